#include "engine/evaluation.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/elapsed.hpp"
#include "base/error.hpp"
#include "comm/collective.hpp"
#include "device/memory_meter.hpp"
#include "engine/non_finite.hpp"
#include "program/input_needs.hpp"

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

/// Owns what it uses.
Prefetch::Read reader_of_groups(std::shared_ptr<const Dataset> data, const Loader& loader,
                                const EvaluationSamples& samples) {
    return [data = std::move(data), loader, samples](const InputNeed& need) {
        return loader.read(need.input, samples.draws(need.step, need.replica, need.microbatch));
    };
}

}  // namespace

Evaluator::Evaluator(const Plan& plan, const Program& program, Source& source, const Weights& weights,
                     std::shared_ptr<const Dataset> validation, Transport& transport)
    : plan_(plan),
      program_(program),
      validation_(std::move(validation)),
      transport_(transport),
      loader_(*validation_, program.evaluation->graph),
      targets_(TargetCount::of(program.evaluation->graph, source, *validation_)),
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

Prefetch Evaluator::make_prefetch(const EvaluationSamples& samples) const {
    std::vector<InputNeed> needs =
        needs_of_group(plan_, program_, program_.mesh.coordinate(transport_.rank()).pp, replica_);
    const size_t ahead = num_inputs_ahead(program_, program_.evaluation->graph, needs, plan_.data.read_ahead_bytes);
    return {std::move(needs),
            samples.num_groups(replica_),
            reader_of_groups(validation_, loader_, samples),
            ahead,
            {"validation data", "group"}};
}

GroupResult Evaluator::run_group(Pass& pass, int64_t group) {
    const bool is_at_work = group < pass.samples.num_groups(replica_);
    const MemoryMeter meter(executor_->device());
    const int64_t taken_before = meter.taken();
    GroupResult own;
    {
        const ThroughHost through_host(transport_, takes_memory_ || executor_->will_record());
        if (is_at_work) own.tally = run_replica(pass, group);
    }
    if (is_at_work) own.losses = executor_->losses();
    own.stop = stop_request_();
    own.took_memory = meter.taken() != taken_before;
    GroupResult all = share_groups(transport_, replica_, own);
    takes_memory_ = all.took_memory;
    return all;
}

Tally Evaluator::run_replica(Pass& pass, int64_t group) {
    const auto draws = [&](int microbatch) { return pass.samples.draws(group, replica_, microbatch); };
    const auto size = [&](int microbatch) { return pass.samples.size(group, replica_, microbatch); };
    const auto load = [&](int microbatch, int input) {
        const double deadline_seconds = kShareOfDeadline * transport_.deadline_seconds();
        return loader_.to_tensor(input, pass.prefetch.take({group, replica_, microbatch, input}, deadline_seconds));
    };
    const int num_microbatches = pass.samples.num_microbatches;
    const auto num_last = static_cast<int64_t>(draws(num_microbatches - 1).size());
    if (sizes_seen_.insert(num_last).second) executor_->expect_new_kernels();
    const size_t num_outputs = program_.evaluation->graph.outputs.size();
    std::vector<at::Tensor> tallies;  // of all microbatches: reading one waits for the device
    const auto take_outputs = [&](int microbatch, std::vector<at::Tensor> outputs) {
        if (size(microbatch) == 0) return;
        tallies.insert(tallies.end(), outputs.begin() + static_cast<std::ptrdiff_t>(num_outputs), outputs.end());
        outputs.resize(num_outputs);
        if (pass.take && num_outputs > 0) pass.take(outputs, size(microbatch));
    };
    executor_->run({load, [](int) { return uint64_t{0}; }, take_outputs,
                    [&](int microbatch) {
                        return "evaluation, " + sample_names(*validation_, draws(microbatch)) +
                               " of the validation data";
                    }});
    Tally tally;
    for (size_t i = 0; i < tallies.size(); i += 2) {
        tally.add({tallies[i].item<int64_t>(), tallies[i + 1].item<int64_t>()});
    }
    // What divides the loss is told by who makes it, whoever has the outputs.
    if (plan_.model.is_target_mean()) {
        int with_samples = 0;
        while (with_samples < num_microbatches && size(with_samples) > 0) ++with_samples;
        tally.targets = executor_->makes_loss() ? targets_->in(with_samples, load) : 0;
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

std::string Evaluator::describe_non_finite(const std::vector<Draw>& samples) const {
    const std::string ignored = targets_ ? targets_->all_ignored_text(samples) : std::string();
    return "the evaluation's loss is not finite: that of " + sample_names(*validation_, samples) +
           " of the validation data is the first" + (ignored.empty() ? "" : "; " + ignored);
}

EvaluationResult Evaluator::run(int64_t num_samples, const TakeOutputs& take) {
    check(num_samples >= 1 && num_samples <= validation_->fields().num_samples, "an evaluation has samples");
    const auto start = Clock::now();
    EvaluationResult result;
    result.samples = num_samples;
    double weighted = 0;
    Tally tally;
    const int num_microbatches = program_.evaluation->schedule.num_microbatches;
    const EvaluationSamples samples{num_samples, program_.microbatch_size, num_microbatches, num_replicas_};
    Pass pass{samples, take, make_prefetch(samples)};
    for (int64_t group = 0; group < samples.num_groups(/*replica=*/0); ++group) {
        const auto [losses, counted, stop, took_memory] = run_group(pass, group);
        tally.add(counted);
        result.took_memory |= took_memory;
        if (stop) {
            result.stopped = true;
            return result;
        }
        for (size_t i = 0; i < losses.size(); ++i) {
            const int replica = static_cast<int>(i) / num_microbatches;
            const int microbatch = static_cast<int>(i) % num_microbatches;
            const auto size = static_cast<double>(samples.size(group, replica, microbatch));
            if (size > 0 && !std::isfinite(losses[i]) && result.remark.empty()) {
                result.remark = describe_non_finite(samples.draws(group, replica, microbatch));
            }
            if (size > 0) weighted += plan_.model.loss_reduction == "mean" ? losses[i] * size : losses[i];
        }
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
