#include "engine/verify_layout.hpp"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "base/error.hpp"
#include "comm/collective.hpp"
#include "comm/first_ranks.hpp"
#include "device/memory_meter.hpp"
#include "engine/initial_weights.hpp"
#include "engine/tensor_difference.hpp"
#include "graph/torch_dtype.hpp"

namespace vpp {

namespace {

constexpr int kAllMicrobatches = -1;

Bytes tensor_bytes(const std::optional<at::Tensor>& found) {
    ByteWriter writer;
    if (!found) return writer.take();
    const at::Tensor plain = found->cpu().contiguous();
    writer.put(from_torch(plain.scalar_type()));
    writer.put(static_cast<uint64_t>(plain.dim()));
    for (int64_t dim : plain.sizes()) writer.put(dim);
    writer.append({static_cast<const std::byte*>(plain.const_data_ptr()), plain.nbytes()});
    return writer.take();
}

at::Tensor tensor_from(const Bytes& bytes) {
    ByteReader reader(bytes);
    const auto dtype = reader.get<DType>();
    std::vector<int64_t> shape(reader.get<uint64_t>());
    for (int64_t& dim : shape) dim = reader.get<int64_t>();
    at::Tensor tensor = at::empty(shape, at::TensorOptions().dtype(to_torch(dtype)));
    const auto content = reader.take(tensor.nbytes());
    std::copy(content.begin(), content.end(), static_cast<std::byte*>(tensor.mutable_data_ptr()));
    return tensor;
}

/// "parameter" of "parameter w1"
std::string kind_of(const std::string& name) {
    return name.substr(0, name.find(' '));
}

/// The FQN that a name speaks of: a parameter's or buffer's, also of a gradient or optimizer state; -1 for others.
int parameter_of(const Graph& graph, const std::string& name) {
    const std::string rest = name.substr(name.find(' ') + 1);
    const bool slot = kind_of(name) == "optimizer";
    for (size_t i = 0; i < graph.parameters.size(); ++i) {
        const std::string& fqn = graph.parameters[i].name;
        if (slot ? rest.starts_with(fqn + ".") : rest == fqn) return static_cast<int>(i);
    }
    return -1;
}

/// " (stage 2, rank 1)" for what has an owner.
std::string place_of(const Program& program, const std::string& name) {
    const int parameter = parameter_of(program.training.graph, name);
    const Split& split = program.training.split;
    for (int stage = 0; parameter >= 0 && stage < split.num_stages(); ++stage) {
        const std::vector<int>& owned = split.stages[static_cast<size_t>(stage)].parameters;
        if (std::find(owned.begin(), owned.end(), parameter) == owned.end()) continue;
        const int pp_rank = program.training.schedule.rank_of_stage[static_cast<size_t>(stage)];
        return " (stage " + std::to_string(stage) + ", rank " + std::to_string(program.mesh.rank({pp_rank, 0, 0})) +
               (program.mesh.dp > 1 ? " and its replicas)" : ")");
    }
    return "";
}

/// Losses are recorded in double; their own dtype says what an ulp is.
at::Tensor in_own_dtype(const at::Tensor& tensor, const std::string& name, const Graph& graph) {
    if (kind_of(name) != "loss") return tensor;
    const int loss = graph.values[static_cast<size_t>(graph.loss)].tensors[0];
    return tensor.to(to_torch(graph.tensors[static_cast<size_t>(loss)].dtype));
}

}  // namespace

void keep_microbatches(Schedule& schedule, int num_microbatches) {
    for (std::vector<Action>& list : schedule.actions) {
        std::erase_if(list, [&](const Action& action) {
            return action.kind != ActionKind::ReduceGrad && action.microbatch >= num_microbatches;
        });
    }
}

void check_complete(const RunRecord& record, const Program& program) {
    const Phase& phase = program.training;
    for (const StepRecord& step : record.steps) {
        const auto need = [&](const std::string& name) { check(step.contains(name), "not recorded: " + name); };
        for (int i = 0; i < program.num_replicas() * phase.schedule.num_microbatches; ++i)
            need("loss of microbatch " + std::to_string(i));
        if (program.evaluation && &step == &record.steps.back()) need("evaluation loss");
        need("norm of all gradients");
        bool is_trained = false;
        for (const GraphParameter& parameter : phase.graph.parameters) {
            need((parameter.is_buffer ? "buffer " : "parameter ") + parameter.name);
            is_trained = is_trained || (parameter.requires_grad && !parameter.uses.empty());
        }
        const auto first = step.lower_bound("gradient ");
        check(!is_trained || (first != step.end() && first->first.starts_with("gradient ")),
              "no gradient was recorded");
    }
}

LayoutVerifier::LayoutVerifier(Sources& sources, const Datasets& data, Transport& transport, int64_t steps,
                               Faults faults)
    : sources_(sources), data_(data), job_(transport), steps_(steps), faults_(std::move(faults)) {
    check(steps >= 1, "a verification has steps");
}

/// With `num_microbatches` the last step stops behind them, and nothing is evaluated.
RunRecord LayoutVerifier::run_steps(Engine& engine, Program& program, int64_t steps, const AfterStep& after_step,
                                    StepWatch* watch, int num_microbatches) {
    RunRecord record;
    for (int64_t step = 0; step < steps; ++step) {
        const bool is_last = step + 1 == steps;
        // The engine reads the lists anew in every step.
        if (is_last && num_microbatches >= 0) keep_microbatches(program.training.schedule, num_microbatches);
        record.through_host += engine.transport().goes_through_host() ? 1 : 0;
        record.steps.push_back(record_step(engine, step, after_step, is_last ? watch : nullptr));
        if (is_last && num_microbatches < 0 && engine.can_evaluate()) {
            record_evaluation(engine, record.steps.back(), watch);
        }
        barrier(job_);  // the ranks that are not used wait here, for one step and no longer
    }
    return record;
}

RunRecord LayoutVerifier::wait_for(const std::string& what, int64_t steps) {
    job_.set_position("waiting for " + what);
    for (int64_t step = 0; step < steps; ++step) barrier(job_);
    return {};
}

RunRecord LayoutVerifier::run_reference(const Layout& layout, int64_t steps, StepWatch* watch, int num_microbatches) {
    if (job_.rank() != 0) return wait_for("the reference", steps);
    job_.set_position("running the reference");
    RunRecord record;
    const auto body = [&](Engine& engine, Program& program) {
        record = run_steps(engine, program, steps, {}, watch, num_microbatches);
    };
    with_reference(layout.plan, layout.program, data_, body, sources_.device());
    return record;
}

RunRecord LayoutVerifier::run_pipeline(const Layout& layout, int64_t steps, StepWatch* watch, int num_microbatches) {
    const int num_ranks = layout.program.mesh.num_ranks();
    if (job_.rank() >= num_ranks) return wait_for("a pipeline of " + std::to_string(num_ranks) + " ranks", steps);
    FirstRanks first(job_, num_ranks);
    const std::unique_ptr<Transport> broken = faults_.transport ? faults_.transport(first) : nullptr;
    Program program = layout.program;
    if (faults_.program) faults_.program(program);
    Engine engine(layout.plan, program, sources_, data_, broken ? *broken : first);
    load_initial_weights(engine, layout.plan, program);
    return run_steps(engine, program, steps, faults_.after_step, watch, num_microbatches);
}

const RunRecord& LayoutVerifier::reference(const Layout& layout) {
    const int num_replicas = layout.program.num_replicas();
    const std::pair key(num_replicas, layout.program.training.schedule.num_microbatches);
    const auto known = references_.find(key);
    if (known != references_.end()) return known->second;
    RunRecord record = run_reference(layout, steps_, nullptr, kAllMicrobatches);
    if (job_.rank() == 0) check_complete(record, layout.program);
    return references_[key] = std::move(record);
}

VerifyResult LayoutVerifier::compare(const Layout& layout) {
    const RunRecord& expected = reference(layout);
    give_back_memory(sources_.device());  // the ranks of the pipeline may share the card of the reference
    const RunRecord got = run_pipeline(layout, steps_, nullptr, kAllMicrobatches);
    give_back_memory(sources_.device());  // its links had streams of their own, with what was kept for these
    VerifyResult result;
    if (job_.rank() == 0) result = compare_runs(expected, got);
    // What rank 0 found decides what all do next.
    ByteWriter writer;
    writer.put(result.different_step);
    writer.put_text(result.different_name);
    const Bytes bytes = broadcast(job_, writer.take());
    ByteReader reader(bytes);
    result.different_step = reader.get<int64_t>();
    result.different_name = reader.get_text();
    if (result.different_step == 0 || has_looked_) return result;
    has_looked_ = true;
    const std::string closer = look_closer(layout, result);
    if (job_.rank() == 0) result.difference = closer;
    return result;
}

StepWatch LayoutVerifier::fetch_reference(const Layout& layout, int64_t step, const std::string& name) {
    StepWatch watch{name, std::nullopt};
    run_reference(layout, step, &watch, kAllMicrobatches);
    return watch;
}

/// Of replicas that have other values the first one that is not as expected.
StepWatch LayoutVerifier::fetch_pipeline(const Layout& layout, int64_t step, const std::string& name,
                                         const std::optional<at::Tensor>& expected) {
    StepWatch watch{name, std::nullopt};
    run_pipeline(layout, step, &watch, kAllMicrobatches);
    const Bytes wanted = tensor_bytes(expected);
    const std::vector<Bytes> all = gather(job_, tensor_bytes(watch.found));
    for (const Bytes& bytes : all) {
        if (bytes.empty()) continue;
        watch.found = tensor_from(bytes);
        if (bytes != wanted) break;
    }
    return watch;
}

/// The first microbatch behind which the two runs differ in `name`: the step is run again with fewer microbatches.
int LayoutVerifier::find_microbatch(const Layout& layout, int64_t step, const std::string& name) {
    const auto differs_behind = [&](int num_microbatches) {
        const RunRecord expected = run_reference(layout, step, nullptr, num_microbatches);
        const RunRecord got = run_pipeline(layout, step, nullptr, num_microbatches);
        ByteWriter writer;
        if (job_.rank() == 0) {
            const StepRecord &a = expected.steps.back(), &b = got.steps.back();
            writer.put(static_cast<int>(a.contains(name) != b.contains(name) ||
                                        (a.contains(name) && a.at(name) != b.at(name))));
        }
        const Bytes bytes = broadcast(job_, writer.take());
        return ByteReader(bytes).get<int>() != 0;
    };
    int equal = 0, different = layout.program.training.schedule.num_microbatches;
    while (different - equal > 1) {
        const int middle = (equal + different) / 2;
        (differs_behind(middle) ? different : equal) = middle;
    }
    return different - 1;
}

std::string LayoutVerifier::look_closer(const Layout& layout, const VerifyResult& result) {
    const std::string& name = result.different_name;
    const int64_t step = result.different_step;
    const StepWatch expected = fetch_reference(layout, step, name);
    const StepWatch got = fetch_pipeline(layout, step, name, expected.found);
    std::string text = name + place_of(layout.program, name) + ", step " + std::to_string(step);
    const std::string kind = kind_of(name);
    if (kind == "gradient" || kind == "buffer") {
        text += ", from microbatch " + std::to_string(find_microbatch(layout, step, name)) + " on";
    }
    text += ": ";
    if (job_.rank() != 0) return text;
    if (!expected.found || !got.found) {
        return text +
               (expected.found ? "the pipeline has none"
                : got.found    ? "the reference has none"
                               : "both are gone") +
               " (" + result.difference + ")";
    }
    const Graph& graph = layout.program.training.graph;
    const auto difference =
        find_difference(in_own_dtype(*expected.found, name, graph), in_own_dtype(*got.found, name, graph));
    if (difference) return text + difference->text();
    return text + "it did not come back when both were run again, so a run is not reproducible (" + result.difference +
           ")";
}

}  // namespace vpp
