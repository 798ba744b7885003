#include "program/prepare.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>

#include "base/error.hpp"
#include "base/slow_notice.hpp"
#include "data/batch.hpp"
#include "data/order.hpp"
#include "graph/model_files.hpp"
#include "graph/recompute.hpp"
#include "graph/split.hpp"
#include "graph/torchscript.hpp"
#include "plan/batch_size.hpp"
#include "program/activation_limit.hpp"
#include "program/cost_model.hpp"
#include "program/counted_targets.hpp"
#include "program/custom_schedule.hpp"
#include "program/evaluation_split.hpp"
#include "program/generated_schedule.hpp"
#include "program/lowered_schedule.hpp"
#include "program/searched_schedule.hpp"
#include "program/shifted_targets.hpp"
#include "program/target_types.hpp"
#include "schedule/checker.hpp"
#include "schedule/forward_only.hpp"
#include "schedule/generators.hpp"
#include "schedule/lowering.hpp"
#include "schedule/merge_backward.hpp"
#include "schedule/pipeline_runs.hpp"
#include "schedule/tied_order.hpp"

namespace vpp {

namespace {

void check_fields(const Dataset& training, const Dataset& validation) {
    for (const Field& field : training.fields().fields) {
        const int twin = validation.fields().find(field.name);
        const Field* other = twin < 0 ? nullptr : &validation.fields().fields[static_cast<size_t>(twin)];
        if (other && other->dtype == field.dtype && other->shape == field.shape) continue;
        throw Error(ErrorKind::BadData,
                    "the field '" + field.name + "' of the validation data does not match the training data (got " +
                        (other ? std::string(name_of(other->dtype)) + shape_text(other->shape) : "no such field") +
                        ", expected " + std::string(name_of(field.dtype)) + shape_text(field.shape) + ")");
    }
}

/// The plan with the number of stages per rank, and the schedule as far as it is there before the split.
struct Layout {
    Plan plan;
    std::optional<Schedule> compute;
    std::optional<SearchRecord> search;
};

Layout find_layout(const Plan& plan, std::optional<Schedule> generated, const Graph& graph, const CostModel& costs) {
    Layout layout{plan, std::move(generated), {}};
    if (plan.pipeline.schedule_type != "AUTO") return layout;
    SearchResult found = search_schedule(plan, graph, costs);
    layout.plan.pipeline.virtual_chunks = found.stages_per_rank;
    layout.search = found;
    layout.compute = std::move(found.schedule);
    return layout;
}

/// All pipeline runs of a step.
Schedule whole_step(const Plan& plan, const Schedule& run) {
    const int64_t pairs_of_run = int64_t{run.num_stages()} * run.num_microbatches;
    const int64_t most = kMostStageMicrobatches / pairs_of_run;
    if (plan.train.accumulate <= most) return repeat_runs(run, plan.train.accumulate);
    throw Error(ErrorKind::Plan,
                "a step has too many pipeline runs (got train.accumulate = " + std::to_string(plan.train.accumulate) +
                    ", expected at most " + std::to_string(most) + " with " + std::to_string(run.num_stages()) +
                    " stages x " + std::to_string(run.num_microbatches) +
                    " microbatches); try train.accumulate = " + std::to_string(most),
                plan.where("train.accumulate"));
}

template <class Predicate>
bool has(const Schedule& schedule, Predicate predicate) {
    return std::any_of(schedule.actions.begin(), schedule.actions.end(), [&](const std::vector<Action>& list) {
        return std::any_of(list.begin(), list.end(), predicate);
    });
}

/// What a generator could not know: one B for I and W side by side where nobody waits for the gap between them, and W
/// behind the gradients of tied parameters that it takes.
Schedule fit_to_model(Schedule compute, const Phase& phase, const CostModel& costs, const ScheduleCosts& of_split) {
    if (has(compute, [](const Action& action) { return action.kind == ActionKind::I; })) {
        if (!has(compute, [](const Action& action) { return action.paired; })) {
            compute = merge_backwards(compute, costs_of_stages(costs, phase.graph, phase.split.cuts, compute.num_ranks),
                                      SearchObjective::Makespan);
        }
        compute = order_tied(compute, schedule_edges(phase.split), of_split);
    }
    return compute;
}

/// What is known of a program before its model is read. `dataset` gives the fields.
Program begin_program(const Plan& plan, const Dataset& dataset, const Datasets& data) {
    check_target_field(plan, dataset.fields());
    Program program;
    program.plan_text = plan.resolved_text;
    program.mesh = {*plan.mesh.pp, *plan.mesh.dp, *plan.mesh.tp};
    program.fields = dataset.fields();
    program.microbatch_size = samples_of_microbatch(plan);
    program.data_digest = data.digest();
    program.token_types = token_types(plan);
    return program;
}

constexpr const char* kNothingMeasured =
    "split_method = \"AUTO\" has no measured costs here, so the cuts are by estimates from FLOPs; vpp train measures "
    "before its first step and keeps them in the run folder, vpp profile now";

/// The cuts of a plan that cuts by time. A search has split the model already, with nothing known of its schedule.
std::optional<Balance> balance_of(const Layout& layout, const CostModel& costs, const Graph& graph) {
    const Plan& plan = layout.plan;
    const int chunks = plan.pipeline.virtual_chunks, num_stages = *plan.mesh.pp * chunks;
    if (!cuts_by_time(plan) || num_stages == 1) return std::nullopt;
    const Schedule* compute = layout.compute && !layout.search ? &*layout.compute : nullptr;
    return find_balance(graph, plan, num_stages, split_times(costs, plan, chunks, compute));
}

/// A schedule of the registry that looks at the costs of the stages and at the limit, as it will run.
Schedule generate_for(const Plan& plan, const Phase& phase, const CostModel& costs, const ScheduleCosts& of_split,
                      const ActivationMemory& memory) {
    const ScheduleSize size{*plan.mesh.pp, plan.pipeline.virtual_chunks, *plan.pipeline.num_microbatches};
    const ScheduleCosts of_stages = costs_of_stages(costs, phase.graph, phase.split.cuts, size.num_ranks);
    return within_limit(plan, memory, size, [&](std::optional<double> limit) {
        return fit_to_model(whole_step(plan, generate_schedule(plan, of_stages, limit)), phase, costs, of_split);
    });
}

/// What the plan's own schedule is refused with names others.
using FindFitting = std::function<std::vector<FittingSchedule>()>;

/// `cuts`: none for those of the plan's split method.
Phase training_phase(const Layout& layout, const CostModel& costs, Graph graph,
                     const std::optional<std::vector<int>>& cuts, const FindFitting& find_fitting) {
    const Plan& plan = layout.plan;
    check_units(graph, plan, "pipeline.smallest_unsplittable_units", plan.pipeline.smallest_unsplittable_units);
    Phase phase;
    const std::vector<int> places =
        cuts ? *cuts : find_split(graph, plan, *plan.mesh.pp * plan.pipeline.virtual_chunks);
    phase.split = make_stages(graph, places, find_recomputed(graph, plan, places));
    if (plan.pipeline.tied_gradients == "per_step") sum_ties_per_step(phase.split);
    phase.graph = std::move(graph);
    const ScheduleCosts of_split = costs_of_split(costs, phase.split, *plan.mesh.pp);
    const ActivationMemory memory(plan, phase.graph, phase.split);
    if (plan.pipeline.schedule_type != "CUSTOM") {
        Schedule compute =
            layout.compute ? whole_step(plan, *layout.compute) : generate_for(plan, phase, costs, of_split, memory);
        if (layout.compute && !layout.search) compute = fit_to_model(std::move(compute), phase, costs, of_split);
        check_activations(plan, compute, memory, find_fitting);
        phase.schedule = lower_and_prove(compute, phase.split, message_order(plan), *plan.mesh.dp > 1);
        return phase;
    }
    CustomSchedule custom = read_custom_schedule(plan, schedule_edges(phase.split));
    check_activations(plan, custom.lowered, memory, find_fitting);
    phase.schedule = whole_step(plan, custom.lowered);
    check_schedule(phase.schedule, schedule_edges(phase.split), check_options(message_order(plan), *plan.mesh.dp > 1));
    std::move(custom.notes.begin(), custom.notes.end(), std::back_inserter(phase.graph.warnings));
    return phase;
}

/// The schedules that a plan may name and that keep to its limit with as many stages a rank: each is tried. AUTO has no
/// moves here; what it finds with them keeps to the limit where this does.
std::vector<FittingSchedule> fitting_schedules(const Plan& plan, const CostModel& costs, const Graph& graph,
                                               const std::optional<std::vector<int>>& cuts) {
    const int stages_per_rank = plan.pipeline.virtual_chunks;
    std::vector<std::string> names;
    for (const std::string& name : schedule_names()) {
        const ScheduleKind& kind = *find_schedule_kind(name);
        const bool takes = stages_per_rank >= kind.fewest_per_rank && stages_per_rank <= kind.most_per_rank;
        if (takes && !kind.is_other_spelling()) names.push_back(name);
    }
    if (!cuts) names.emplace_back("AUTO");
    std::vector<FittingSchedule> fitting;
    for (const std::string& name : names) {
        if (name == plan.pipeline.schedule_type) continue;
        Plan other = plan;
        other.pipeline.schedule_type = name;
        other.pipeline.choose_virtual_chunks = false;
        other.pipeline.search.moves = 0;
        try {
            const Layout layout = find_layout(other, generate_schedule(other), graph, costs);
            const std::optional<Balance> balance = cuts ? std::nullopt : balance_of(layout, costs, graph);
            const Phase phase = training_phase(layout, costs, graph, balance ? balance->cuts : cuts, {});
            const ActivationMemory memory(other, phase.graph, phase.split);
            fitting.push_back({name, memory.peak_bytes(phase.schedule)});
        } catch (const Error& error) {
            if (error.kind() != ErrorKind::Plan) throw;
        }
    }
    return fitting;
}

/// Split, schedule and costs of a program. Gives the plan with the number of stages per rank.
Plan lay_out(Program& program, const Plan& plan, std::optional<Schedule> generated, Graph graph,
             const std::optional<std::vector<int>>& cuts) {
    const CostModel costs = find_costs(plan, graph);
    const Layout layout = find_layout(plan, std::move(generated), graph, costs);
    program.balance = cuts ? std::nullopt : balance_of(layout, costs, graph);
    if (cuts_by_time(plan) && !costs.is_measured) graph.warnings.emplace_back(kNothingMeasured);
    if (!costs.warning.empty()) graph.warnings.push_back(costs.warning);
    const auto find_fitting = [&] { return fitting_schedules(layout.plan, costs, graph, cuts); };
    program.training =
        training_phase(layout, costs, graph, program.balance ? program.balance->cuts : cuts, find_fitting);
    program.has_measured_costs = costs.is_measured;
    program.costs = costs_of_split(costs, program.training.split, program.mesh.pp);
    program.cost_unit = costs.unit;
    program.cost_source = costs.source;
    program.search = layout.search;
    return layout.plan;
}

Phase evaluation_phase(const Plan& plan, Graph graph, const Phase& training) {
    Phase phase;
    phase.split = make_stages(graph, match_split(graph, training.graph, training.split));
    check_weights_follow(graph, phase.split, training.graph, training.split);
    phase.graph = std::move(graph);
    Schedule compute =
        make_schedule("FORWARD_ONLY", *plan.mesh.pp, plan.pipeline.virtual_chunks, microbatches_of_step(plan));
    if (compute.rank_of_stage != training.schedule.rank_of_stage) compute = forwards_of(training.schedule);
    phase.schedule = lower_and_prove(compute, phase.split, message_order(plan), /*reduces=*/false);
    return phase;
}

void warn_of_writes(const Graph& evaluation, std::vector<std::string>& warnings) {
    const auto written = std::find_if(evaluation.parameters.begin(), evaluation.parameters.end(),
                                      [](const GraphParameter& entry) { return entry.written; });
    if (written == evaluation.parameters.end()) return;
    warnings.push_back("the model writes '" + written->name +
                       "' in evaluation too, as one that was traced in training mode does: there it is not kept");
}

/// Of evaluation's own files: a trace in eval mode may do without a head of training, or have merged its weights into
/// others, which then are training's own.
void warn_of_unused(const Graph& evaluation, const Graph& training, std::vector<std::string>& warnings) {
    std::vector<std::string> names;
    for (size_t i = 0; i < training.parameters.size(); ++i) {
        const GraphParameter& entry = training.parameters[i];
        const bool is_trained = entry.requires_grad && !entry.uses.empty();
        if (is_trained && evaluation.parameters[i].uses.empty()) names.push_back(entry.name);
    }
    if (names.empty()) return;
    warnings.push_back("evaluation does not use '" + names.front() + "'" +
                       (names.size() > 1 ? " and " + std::to_string(names.size() - 1) + " more" : "") +
                       ", which training changes: right for a head of training alone; where eval() merges weights into "
                       "others, its file cannot be model.eval_file, as weights are those of training");
}

/// What is said of files that evaluation has for itself.
void add_new(const std::vector<std::string>& of_evaluation, std::vector<std::string>& warnings) {
    for (const std::string& warning : of_evaluation) {
        if (std::ranges::find(warnings, warning) == warnings.end()) warnings.push_back(warning);
    }
}

/// Stages by the plan's own split method. Split points and stages by hand may name submodules that do nothing in
/// evaluation mode, so they are looked for in the training graph.
Phase evaluation_phase_alone(const Plan& plan, const TorchScriptOptions& options, const ModelFiles& files,
                             Graph graph) {
    const int num_stages = *plan.mesh.pp * plan.pipeline.virtual_chunks;
    Phase phase;
    if (plan.pipeline.split_method == "MANUAL" || plan.pipeline.is_by_hand()) {
        TorchScriptOptions training = options;
        training.training = true;
        training.keep_outputs = training.count_hits = false;
        const Graph twin = load_torchscript(files, training).graph;
        const Split split = make_stages(twin, find_split(twin, plan, num_stages));
        phase.split = make_stages(graph, match_split(graph, twin, split));
    } else {
        phase.split = make_stages(graph, find_split(graph, plan, num_stages));
    }
    phase.graph = std::move(graph);
    phase.schedule = lower_and_prove(
        make_schedule("FORWARD_ONLY", *plan.mesh.pp, plan.pipeline.virtual_chunks, microbatches_of_step(plan)),
        phase.split, message_order(plan), /*reduces=*/false);
    return phase;
}

SampleReader reader_of(const Dataset& data) {
    return [&data](int field, std::span<std::byte> out) {
        const Fields& fields = data.fields();
        const int64_t bytes_per_sample = fields.fields.at(static_cast<size_t>(field)).bytes_per_sample();
        std::vector<Draw> draws(out.size() / static_cast<size_t>(bytes_per_sample));
        for (size_t i = 0; i < draws.size(); ++i) draws[i].sample = static_cast<int64_t>(i) % fields.num_samples;
        read_samples(data, field, draws, out);
    };
}

/// A traced model may have its batch size baked in: then it cannot take fewer samples at the end of the data.
/// `remedy`: how they are left out.
void check_last_microbatch(const ModelFiles& files, TorchScriptOptions options, int64_t num_samples,
                           const std::string& remedy) {
    const int64_t full = options.microbatch_size, rest = num_samples % full;
    if (rest == 0) return;
    options.microbatch_size = rest;
    try {
        load_torchscript(files, options);
    } catch (const Error& error) {
        throw Error(error.kind(), "the last microbatch of the validation data has " + std::to_string(rest) +
                                      (rest == 1 ? " sample" : " samples") + " instead of " + std::to_string(full) +
                                      ", and the model cannot take that: it was probably traced with its batch size. " +
                                      remedy + " (" + error.what() + ")");
    }
}

/// The same of the evaluations while a model is trained, before hours have gone by.
void check_last_evaluated(const Plan& plan, const ModelFiles& files, const TorchScriptOptions& options,
                          int64_t num_samples) {
    if (plan.train.eval_every == 0) return;
    const int64_t size = *plan.train.global_batch_size, batches = num_samples / size;
    const std::string fewer =
        batches > 0 ? "Leave these samples out with train.eval_batches = " + std::to_string(batches) + ", or s" : "S";
    check_last_microbatch(files, options, samples_of_batches(num_samples, size, plan.train.eval_batches),
                          fewer + "cript the model instead");
}

Phase one_stage(const Phase& phase, const std::string& schedule) {
    Phase reference;
    reference.graph = phase.graph;
    reference.split = make_stages(phase.graph, {});
    const Schedule compute = make_schedule(schedule, 1, 1, phase.schedule.num_microbatches);
    reference.schedule = lower_and_prove(compute, reference.split, MessageOrder::BeforeConsumer, /*reduces=*/false);
    return reference;
}

}  // namespace

std::string Datasets::digest() const {
    return (training ? training->digest() : "") + (validation ? "+" + validation->digest() : "");
}

Datasets open_datasets(const Plan& plan, const Logger& log) {
    std::optional<SlowNotice> notice;
    if (log) notice.emplace(log, "opening the data");
    Datasets data{open_dataset(plan, Subset::Train), open_dataset(plan, Subset::Validation)};
    if (data.validation) check_fields(*data.training, *data.validation);
    training_order(*data.training, plan);  // weights that do not fit the files are refused before anything is computed
    return data;
}

Prepared prepare(const Plan& plan, const Datasets& data, at::Device device) {
    std::optional<Schedule> generated = generate_schedule(plan);
    const ModelFiles files = open_model_files(plan);
    Prepared prepared;
    Program& program = prepared.program;
    program = begin_program(plan, *data.training, data);
    const auto options = [&](bool training) {
        TorchScriptOptions made = torchscript_options(plan, program.fields, program.microbatch_size, training, device);
        made.read_samples = reader_of(*data.training);
        return made;
    };
    LoadedModel model = load_torchscript(files, options(/*training=*/true));
    if (!plan.pipeline.forward_only) check_has_parameters(model.graph, plan.where("model"));
    check_target_of_output(plan, model.graph);
    if (plan.model.is_target_mean()) counted_targets(plan, model.graph);
    std::string shifted = shifted_twice_text(plan, program.fields, program.microbatch_size, model.graph, *model.source);
    if (!shifted.empty()) model.graph.warnings.push_back(std::move(shifted));
    if (*plan.train.global_batch_size > program.fields.num_samples) {
        model.graph.warnings.push_back("a step takes " + std::to_string(*plan.train.global_batch_size) +
                                       " samples (train.global_batch_size), and the data have " +
                                       std::to_string(program.fields.num_samples) +
                                       ": some come more than once in each step");
    }
    const Plan settled = lay_out(program, plan, std::move(generated), std::move(model.graph), std::nullopt);
    prepared.sources.training = std::move(model.source);
    if (data.validation) {
        LoadedModel twin = load_torchscript(files, options(/*training=*/false));
        check_last_evaluated(plan, files, options(/*training=*/false), data.validation->fields().num_samples);
        std::vector<std::string>& warnings = program.training.graph.warnings;
        warn_of_writes(twin.graph, warnings);
        if (files.evaluation) {
            add_new(twin.graph.warnings, warnings);
            warn_of_unused(twin.graph, program.training.graph, warnings);
        }
        program.evaluation = evaluation_phase(settled, std::move(twin.graph), program.training);
        prepared.sources.evaluation = std::move(twin.source);
    }
    prepared.sources.place_on(device);
    return prepared;
}

Prepared prepare_evaluation(const Plan& plan, const Datasets& data, const EvaluationWish& wish, at::Device device) {
    check(data.validation != nullptr, "an evaluation has validation data");
    const ModelFiles files = open_model_files(plan);
    Prepared prepared;
    Program& program = prepared.program;
    program = begin_program(plan, *data.validation, data);
    TorchScriptOptions options =
        torchscript_options(plan, program.fields, program.microbatch_size, /*training=*/false, device);
    options.read_samples = reader_of(*data.validation);
    options.keep_outputs = wish.outputs;
    LoadedModel model = load_torchscript(files, options);
    if (plan.model.is_target_mean()) counted_targets(plan, model.graph);
    if (wish.outputs && model.graph.outputs.empty()) {
        throw Error(ErrorKind::BadData,
                    file_names(plan) +
                        ": forward returns the loss alone, so there are no outputs to write; let "
                        "it return them beside the loss, or without a loss and add a [loss] section");
    }
    check_last_microbatch(files, options, wish.num_samples,
                          "Leave these samples out with --drop-last, or script the model instead");
    program.evaluation = evaluation_phase_alone(plan, options, files, std::move(model.graph));
    prepared.sources.evaluation = std::move(model.source);
    prepared.sources.place_on(device);
    return prepared;
}

Digest training_digest(const Plan& plan, const Fields& fields) {
    Digest digest;
    open_torchscript(open_model_files(plan),
                     torchscript_options(plan, fields, samples_of_microbatch(plan), /*training=*/true, at::kCPU),
                     digest);
    return digest;
}

Program reference_program(const Program& program) {
    Program reference = program;
    reference.replicas_per_rank = program.num_replicas();
    reference.mesh = {1, 1, 1};
    reference.costs = {};
    reference.search.reset();
    reference.balance.reset();
    reference.training = one_stage(program.training, "1F1B");
    if (program.evaluation) reference.evaluation = one_stage(*program.evaluation, "FORWARD_ONLY");
    return reference;
}

Program with_layout(const Program& program, const Plan& plan, const std::optional<std::vector<int>>& cuts) {
    if (cuts && plan.pipeline.schedule_type == "AUTO") {
        throw Error(ErrorKind::Plan, "AUTO chooses the number of stages itself, so it takes no cuts from elsewhere");
    }
    Program changed = program;
    changed.plan_text = plan.resolved_text;
    changed.mesh = {*plan.mesh.pp, *plan.mesh.dp, *plan.mesh.tp};
    check(changed.microbatch_size == samples_of_microbatch(plan), "another layout has the same microbatches");
    const Plan settled = lay_out(changed, plan, generate_schedule(plan), program.training.graph, cuts);
    if (program.evaluation) changed.evaluation = evaluation_phase(settled, program.evaluation->graph, changed.training);
    return changed;
}

void Sources::place_on(at::Device device) {
    for (const auto* source : {&training, &evaluation}) {
        if (*source) (*source)->place_on(device);
    }
}

Sources open_sources(const Plan& plan, const Program& program, at::Device device) {
    const ModelFiles files = open_model_files(plan);
    const auto open = [&](bool training, const Graph& planned) {
        TorchScriptOptions options =
            torchscript_options(plan, program.fields, program.microbatch_size, training, device);
        options.keep_outputs = !planned.outputs.empty();
        Digest digest;
        auto source = open_torchscript(files, options, digest);
        if (digest == planned.digest) return source;
        throw Error(ErrorKind::RanksDisagree, "this rank reads another model file than rank 0 (digest " +
                                                  to_hex(digest) + ", rank 0 has " + to_hex(planned.digest) +
                                                  "); make " + file_names(plan) + " the same on every machine");
    };
    Sources sources;
    if (program.has_training()) sources.training = open(true, program.training.graph);
    if (program.evaluation) sources.evaluation = open(false, program.evaluation->graph);
    sources.place_on(device);
    return sources;
}

}  // namespace vpp
