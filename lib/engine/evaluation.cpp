#include "engine/evaluation.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/elapsed.hpp"
#include "base/error.hpp"
#include "comm/collective.hpp"
#include "device/memory_meter.hpp"
#include "engine/non_finite.hpp"

namespace vpp {

namespace {

void write_group(ByteWriter& writer, const GroupResult& group) {
    writer.put(group.stop);
    writer.put(group.took_memory);
    writer.put(group.tally);
    for (double loss : group.losses) writer.put(loss);
}

/// Beside what is there.
void read_group(ByteReader& reader, GroupResult& group) {
    group.stop = reader.get<bool>() || group.stop;
    group.took_memory = reader.get<bool>() || group.took_memory;
    group.tally.add(reader.get<Tally>());
    while (!reader.empty()) group.losses.push_back(reader.get<double>());
}

/// The losses from the ranks that make them, on every rank, and whether any wants to stop.
GroupResult share_groups(Transport& transport, int replica, const GroupResult& own) {
    ByteWriter writer;
    writer.put(replica);
    write_group(writer, own);
    std::map<int, GroupResult> by_replica;
    for (const Bytes& bytes : gather(transport, writer.take())) {
        ByteReader reader(bytes);
        GroupResult& group = by_replica[reader.get<int>()];
        read_group(reader, group);
    }
    GroupResult all;
    for (const auto& [number, group] : by_replica) {
        all.stop = group.stop || all.stop;
        all.took_memory = group.took_memory || all.took_memory;
        all.tally.add(group.tally);
        all.losses.insert(all.losses.end(), group.losses.begin(), group.losses.end());
    }
    ByteWriter shared;
    write_group(shared, all);
    GroupResult result;
    const Bytes bytes = broadcast(transport, shared.take());
    ByteReader reader(bytes);
    read_group(reader, result);
    return result;
}

std::vector<Draw> draws_from(int64_t first, int64_t count) {
    std::vector<Draw> draws;
    for (int64_t i = 0; i < count; ++i) draws.push_back({first + i});
    return draws;
}

}  // namespace

Evaluator::Evaluator(const Plan& plan, const Program& program, Source& source, const Weights& weights,
                     const Dataset& validation, Transport& transport)
    : plan_(plan),
      program_(program),
      validation_(validation),
      transport_(transport),
      loader_(validation, program.evaluation->graph),
      targets_(TargetCount::of(program.evaluation->graph, source, validation, program.microbatch_size)),
      num_replicas_(program.evaluation->graph.outputs.empty() ? program.mesh.dp : 1),
      replica_(program.mesh.coordinate(transport.rank()).dp) {
    check(targets_ || !plan.model.is_target_mean(), "a mean over targets has some to count");
    SegmentOptions options;
    options.training = false;
    options.recorder = SharedRecorder::where(plan.pipeline.cuda_graphs, source.device());
    executor_ = std::make_unique<Executor>(
        *program.evaluation, source, weights, options, transport, program.mesh.pipeline_of(transport.rank()),
        program.mesh.coordinate(transport.rank()).pp, plan.pipeline.overlap_p2p_comm);
}

int64_t Evaluator::samples_per_group() const {
    return program_.microbatch_size * program_.evaluation->schedule.num_microbatches;
}

int64_t Evaluator::size_of_microbatch(int microbatch, int64_t count) const {
    return std::clamp<int64_t>(count - microbatch * program_.microbatch_size, 0, program_.microbatch_size);
}

GroupResult Evaluator::run_groups(int64_t begin, int64_t count, const TakeOutputs& take) {
    const int64_t before = replica_ * samples_per_group();
    const bool is_at_work = replica_ < num_replicas_ && before < count;
    const MemoryMeter meter(executor_->device());
    const int64_t taken_before = meter.taken();
    GroupResult own;
    {
        const ThroughHost through_host(transport_, takes_memory_ || executor_->will_record());
        if (is_at_work) own.tally = run_group(begin + before, std::min(samples_per_group(), count - before), take);
    }
    if (is_at_work) own.losses = executor_->losses();
    own.stop = stop_request_();
    own.took_memory = meter.taken() != taken_before;
    GroupResult all = share_groups(transport_, replica_, own);
    takes_memory_ = all.took_memory;
    return all;
}

Tally Evaluator::run_group(int64_t begin, int64_t count, const TakeOutputs& take) {
    // A microbatch behind the end of the data repeats the last one that has samples; its loss counts nothing.
    const auto last = static_cast<int>((count - 1) / program_.microbatch_size);
    const auto draws = [&](int microbatch) {
        const int used = std::min(microbatch, last);
        return draws_from(begin + used * program_.microbatch_size, size_of_microbatch(used, count));
    };
    const int64_t num_last = size_of_microbatch(last, count);
    if (sizes_seen_.insert(num_last).second) executor_->expect_new_kernels();
    const size_t num_outputs = program_.evaluation->graph.outputs.size();
    std::vector<at::Tensor> tallies;  // of all microbatches: reading one waits for the device
    const auto take_outputs = [&](int microbatch, std::vector<at::Tensor> outputs) {
        const int64_t size = size_of_microbatch(microbatch, count);
        if (size == 0) return;
        tallies.insert(tallies.end(), outputs.begin() + static_cast<std::ptrdiff_t>(num_outputs), outputs.end());
        outputs.resize(num_outputs);
        if (take && num_outputs > 0) take(outputs, size);
    };
    executor_->run({[&](int microbatch, int input) { return loader_.load(input, draws(microbatch)); },
                    [](int) { return uint64_t{0}; }, take_outputs,
                    [&](int microbatch) {
                        return "evaluation, " + sample_names(validation_, draws(microbatch)) +
                               " of the validation data";
                    }});
    Tally tally;
    for (size_t i = 0; i < tallies.size(); i += 2) {
        tally.add({tallies[i].item<int64_t>(), tallies[i + 1].item<int64_t>()});
    }
    // What divides the loss is told by who makes it, whoever has the outputs.
    if (plan_.model.is_target_mean()) {
        tally.targets = executor_->makes_loss() ? targets_->in(draws_from(begin, count)) : 0;
    }
    return tally;
}

void Evaluator::add_metrics(const Tally& tally, EvaluationResult& result) const {
    for (const std::string& metric : plan_.eval.metrics) {
        if (metric == "perplexity") result.perplexity = std::exp(result.loss);
        if (metric == "accuracy" && tally.targets > 0) {
            result.accuracy = static_cast<double>(tally.hits) / static_cast<double>(tally.targets);
        }
    }
}

std::string Evaluator::describe_non_finite(int64_t first, int64_t count) const {
    const std::vector<Draw> samples = draws_from(first, count);
    const std::string ignored = targets_ ? targets_->all_ignored_text(samples) : std::string();
    return "the evaluation's loss is not finite: that of " + sample_names(validation_, samples) +
           " of the validation data is the first" + (ignored.empty() ? "" : "; " + ignored);
}

EvaluationResult Evaluator::run(int64_t num_samples, const TakeOutputs& take) {
    check(num_samples >= 1 && num_samples <= validation_.fields().num_samples, "an evaluation has samples");
    const auto start = Clock::now();
    EvaluationResult result;
    double weighted = 0;
    Tally tally;
    const int64_t most_samples = num_replicas_ * samples_per_group();
    for (int64_t begin = 0; begin < num_samples; begin += most_samples) {
        const int64_t count = std::min(most_samples, num_samples - begin);
        const auto [losses, counted, stop, took_memory] = run_groups(begin, count, take);
        tally.add(counted);
        result.took_memory |= took_memory;
        if (stop) {
            result.stopped = true;
            return result;
        }
        for (size_t microbatch = 0; microbatch < losses.size(); ++microbatch) {
            const auto size = static_cast<double>(size_of_microbatch(static_cast<int>(microbatch), count));
            const double loss = losses[microbatch];
            if (size > 0 && !std::isfinite(loss) && result.remark.empty()) {
                result.remark = describe_non_finite(begin + static_cast<int64_t>(microbatch) * program_.microbatch_size,
                                                    static_cast<int64_t>(size));
            }
            if (size > 0) weighted += plan_.model.loss_reduction == "mean" ? loss * size : loss;
        }
        result.samples += count;
    }
    const bool is_target_mean = plan_.model.is_target_mean();
    result.loss = weighted / static_cast<double>(is_target_mean ? tally.targets : result.samples);
    if (is_target_mean && tally.targets == 0) {
        result.remark =
            "the evaluation's loss is not finite: all targets of its samples are " + targets_->counted().ignored_text();
    }
    add_metrics(tally, result);
    result.seconds = seconds_since(start);
    return result;
}

}  // namespace vpp
