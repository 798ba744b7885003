#include "engine/target_count.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/ne.h>

#include "stage/pass.hpp"

namespace vpp {

std::optional<TargetCount> TargetCount::of(const Graph& graph, Source& source, const Dataset& data) {
    const std::optional<CountedTargets> counted = find_counted_targets(graph);
    if (!counted) return std::nullopt;
    return TargetCount(*counted, graph, source, data);
}

TargetCount::TargetCount(CountedTargets counted, const Graph& graph, Source& source, const Dataset& data)
    : counted_(std::move(counted)),
      loader_(data, graph),
      targets_(source.executable(counted_.selection(graph), at::kCPU)) {}

int64_t TargetCount::in(int num_microbatches, const Load& load) const {
    const at::NoGradGuard no_gradients;
    int64_t count = 0;
    for (int microbatch = 0; microbatch < num_microbatches; ++microbatch) {
        std::vector<c10::IValue> inputs;
        for (int input : counted_.inputs) inputs.emplace_back(load(microbatch, input));
        run_model([&] {
            // Bytes would be compared with a byte, and the loss takes none for -100.
            const at::Tensor targets = targets_->run(std::move(inputs), 0).at(0).toTensor().to(at::kLong);
            count += at::ne(targets, counted_.ignore_index).sum().item<int64_t>();
        });
    }
    return count;
}

std::string TargetCount::all_ignored_text(std::span<const Draw> samples) const {
    if (in(1, [&](int, int input) { return loader_.load(input, samples); }) > 0) return "";
    return "all targets there are " + counted_.ignored_text() + ", and a mean of none is NaN";
}

}  // namespace vpp
