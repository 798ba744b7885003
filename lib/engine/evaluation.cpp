// Evaluation: forward actions only, over the validation data in its own order. It uses no key, changes no buffer and
// moves no data position, so a run that evaluates has the bits of one that does not.
#include <algorithm>
#include <chrono>
#include <numeric>

#include "base/error.hpp"
#include "comm/collective.hpp"
#include "engine/engine.hpp"

namespace vpp {

namespace {

/// The losses of one group of microbatches, from the rank that makes them, on every rank.
std::vector<double> share_losses(Transport& transport, const std::vector<double>& losses) {
    ByteWriter writer;
    for (double loss : losses) writer.put(loss);
    const std::vector<Bytes> all = gather(transport, writer.take());
    Bytes found;
    for (const Bytes& bytes : all) {
        if (!bytes.empty()) found = bytes;
    }
    const Bytes bytes = broadcast(transport, std::move(found));
    ByteReader reader(bytes);
    std::vector<double> shared;
    while (!reader.empty()) shared.push_back(reader.get<double>());
    return shared;
}

}  // namespace

EvaluationResult Engine::evaluate() {
    check(can_evaluate(), "only plans with validation data evaluate");
    const auto start = std::chrono::steady_clock::now();
    const int num_microbatches = program_.evaluation->schedule.num_microbatches;
    const int64_t group = program_.microbatch_size * num_microbatches;
    int64_t num_samples = data_.validation->fields().num_samples;
    if (plan_.train.eval_batches > 0) num_samples = std::min(num_samples, plan_.train.eval_batches * group);
    EvaluationResult result;
    double weighted = 0;
    for (int64_t begin = 0; begin < num_samples; begin += group) {
        const int64_t count = std::min(group, num_samples - begin);
        // A microbatch behind the end of the data repeats the last sample; its loss counts nothing.
        const auto size_of_slice = [&](int microbatch) {
            const int64_t rest = count - microbatch * program_.microbatch_size;
            return std::clamp<int64_t>(rest, 0, program_.microbatch_size);
        };
        const auto samples = [&](int microbatch) {
            const int64_t size = size_of_slice(microbatch);
            std::vector<int64_t> indices(static_cast<size_t>(std::max<int64_t>(size, 1)));
            const int64_t first = begin + std::min(microbatch * program_.microbatch_size, count - 1);
            std::iota(indices.begin(), indices.end(), first);
            return indices;
        };
        evaluation_->run(
            {[&](int microbatch, int input) { return evaluation_loader_->load(input, samples(microbatch)); },
             [](int) { return uint64_t{0}; }});
        const std::vector<double> losses = share_losses(transport_, evaluation_->losses());
        for (int microbatch = 0; microbatch < num_microbatches; ++microbatch) {
            const double size = static_cast<double>(size_of_slice(microbatch));
            const double loss = losses[static_cast<size_t>(microbatch)];
            if (size > 0) weighted += plan_.model.loss_reduction == "mean" ? loss * size : loss;
        }
        result.samples += count;
    }
    result.loss = weighted / static_cast<double>(result.samples);
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return result;
}

}  // namespace vpp
