#include "engine/drift.hpp"

#include <map>

#include "base/error.hpp"
#include "base/few.hpp"
#include "base/hash.hpp"
#include "comm/collective.hpp"

namespace vpp {

namespace {

Digest digest_of(const at::Tensor& tensor) {
    const at::Tensor plain = tensor.detach().cpu().contiguous();
    return hash_bytes({static_cast<const std::byte*>(plain.const_data_ptr()), plain.nbytes()});
}

/// Ranks by value, both in the order of ranks.
using Holders = std::map<std::string, std::vector<int>>;

/// What is said about the first parameter of several values; empty when there is none.
std::string describe_drift(const Graph& graph, const std::map<int, Holders>& holders) {
    std::string first;
    int num_different = 0;
    for (const auto& [parameter, ranks_of] : holders) {
        if (ranks_of.size() == 1 || num_different++ > 0) continue;
        const GraphParameter& entry = graph.parameters[static_cast<size_t>(parameter)];
        first = std::string(entry.is_buffer ? "the buffer " : "the parameter ") + printable(entry.name) +
                " is not the same";
        for (const auto& [digest, ranks] : ranks_of) first += ", " + ranks_text(ranks) + ": " + digest.substr(0, 16);
    }
    if (num_different > 1) first += "; " + std::to_string(num_different - 1) + " more differ";
    return first;
}

}  // namespace

void check_drift(Transport& transport, const Mesh& mesh, const Graph& graph, const Weights& weights, int64_t step) {
    ByteWriter own;
    for (int parameter : weights.owned()) {
        own.put(parameter);
        own.put(digest_of(weights.at(parameter)));
    }
    std::map<int, Holders> holders;
    const std::vector<Bytes> shares = gather(transport, own.take());
    for (size_t rank = 0; rank < shares.size(); ++rank) {
        ByteReader reader(shares[rank]);
        while (!reader.empty()) {
            const auto parameter = reader.get<int>();
            holders[parameter][to_hex(reader.get<Digest>())].push_back(static_cast<int>(rank));
        }
    }
    const std::string drift = to_string(broadcast(transport, to_bytes(describe_drift(graph, holders))));
    if (drift.empty()) return;
    throw Error(ErrorKind::RanksDisagree,
                "the replicas have drifted apart by the end of step " + std::to_string(step) + ": " + drift + " (" +
                    mesh.text() +
                    "). A machine among them makes errors; start again from the last checkpoint without it");
}

}  // namespace vpp
