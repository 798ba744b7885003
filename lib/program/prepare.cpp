#include "program/prepare.hpp"

#include <algorithm>
#include <iterator>
#include <optional>

#include "base/error.hpp"
#include "graph/archive.hpp"
#include "graph/recompute.hpp"
#include "graph/split.hpp"
#include "graph/torchscript.hpp"
#include "program/activation_limit.hpp"
#include "program/cost_model.hpp"
#include "program/custom_schedule.hpp"
#include "program/evaluation_split.hpp"
#include "program/generated_schedule.hpp"
#include "program/searched_schedule.hpp"
#include "schedule/checker.hpp"
#include "schedule/forward_only.hpp"
#include "schedule/generators.hpp"
#include "schedule/lowering.hpp"
#include "schedule/merge_backward.hpp"
#include "schedule/tied_order.hpp"

namespace vpp {

namespace {

/// Lowers, and proves the result before anyone relies on it.
Schedule lower_and_prove(const Schedule& compute, const Split& split) {
    const std::vector<ScheduleEdge> edges = schedule_edges(split);
    Schedule lowered = lower(compute, edges);
    check_schedule(lowered, edges);
    return lowered;
}

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

int64_t microbatch_size_of(const Plan& plan) {
    const int64_t parts = int64_t{*plan.pipeline.num_microbatches} * *plan.mesh.dp;
    return *plan.train.global_batch_size / parts;
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

/// A schedule of the registry that looks at the costs of the stages.
Schedule generate_for(const Plan& plan, const Graph& graph, const Split& split, const CostModel& costs) {
    const ScheduleSize size{*plan.mesh.pp, plan.pipeline.virtual_chunks, *plan.pipeline.num_microbatches};
    return generate_schedule(plan, costs_of_stages(costs, graph, split.cuts, size.num_ranks),
                             activation_limit(plan, split, size));
}

bool has_pairs(const Schedule& schedule) {
    return std::any_of(schedule.actions.begin(), schedule.actions.end(), [](const std::vector<Action>& list) {
        return std::any_of(list.begin(), list.end(), [](const Action& action) { return action.paired; });
    });
}

/// What a generator could not know: one B for I and W side by side where nobody waits for the gap between them, and W
/// behind the gradients of tied parameters that it takes.
Schedule fit_to_model(const Schedule& compute, const Phase& phase, const CostModel& costs) {
    const int num_ranks = compute.num_ranks;
    Schedule fitted = compute;
    if (!has_pairs(compute)) {
        fitted = merge_backwards(compute, costs_of_stages(costs, phase.graph, phase.split.cuts, num_ranks),
                                 SearchObjective::Makespan);
    }
    return order_tied(fitted, schedule_edges(phase.split), costs_of_split(costs, phase.split, num_ranks));
}

Phase training_phase(const Layout& layout, const CostModel& costs, Graph graph) {
    const Plan& plan = layout.plan;
    Phase phase;
    const std::vector<int> cuts = find_split(graph, plan, *plan.mesh.pp * plan.pipeline.virtual_chunks);
    phase.split = make_stages(graph, cuts, find_recomputed(graph, plan, cuts));
    phase.graph = std::move(graph);
    if (plan.pipeline.schedule_type != "CUSTOM") {
        const Schedule compute = layout.compute ? *layout.compute : generate_for(plan, phase.graph, phase.split, costs);
        check_activations(plan, compute, phase.split);
        phase.schedule = lower_and_prove(fit_to_model(compute, phase, costs), phase.split);
        return phase;
    }
    CustomSchedule custom = read_custom_schedule(plan, schedule_edges(phase.split));
    check_activations(plan, custom.lowered, phase.split);
    phase.schedule = std::move(custom.lowered);
    std::move(custom.notes.begin(), custom.notes.end(), std::back_inserter(phase.graph.warnings));
    return phase;
}

Phase evaluation_phase(const Plan& plan, Graph graph, const Phase& training) {
    Phase phase;
    phase.split = make_stages(graph, match_split(graph, training.graph, training.split));
    phase.graph = std::move(graph);
    Schedule compute =
        make_schedule("FORWARD_ONLY", *plan.mesh.pp, plan.pipeline.virtual_chunks, *plan.pipeline.num_microbatches);
    if (compute.rank_of_stage != training.schedule.rank_of_stage) compute = forwards_of(training.schedule);
    phase.schedule = lower_and_prove(compute, phase.split);
    return phase;
}

Phase one_stage(const Phase& phase, const std::string& schedule) {
    Phase reference;
    reference.graph = phase.graph;
    reference.split = make_stages(phase.graph, {});
    const Schedule compute = make_schedule(schedule, 1, 1, phase.schedule.num_microbatches);
    reference.schedule = lower_and_prove(compute, reference.split);
    return reference;
}

}  // namespace

std::string Datasets::digest() const {
    return training->digest() + (validation ? "+" + validation->digest() : "");
}

Datasets open_datasets(const Plan& plan) {
    Datasets data{open_dataset(plan, Subset::Train), open_dataset(plan, Subset::Validation)};
    if (data.validation) check_fields(*data.training, *data.validation);
    return data;
}

Prepared prepare(const Plan& plan, const Datasets& data) {
    std::optional<Schedule> generated = generate_schedule(plan);
    const auto archive = std::make_shared<const Archive>(plan.model.file);
    Prepared prepared;
    Program& program = prepared.program;
    program.plan_text = plan.resolved_text;
    program.mesh = {*plan.mesh.pp, *plan.mesh.dp, *plan.mesh.tp};
    program.fields = data.training->fields();
    program.microbatch_size = microbatch_size_of(plan);
    program.data_digest = data.digest();
    LoadedModel model = load_torchscript(
        archive, torchscript_options(plan, program.fields, program.microbatch_size, /*training=*/true));
    const CostModel costs = find_costs(plan, model.graph);
    const Layout layout = find_layout(plan, std::move(generated), model.graph, costs);
    program.training = training_phase(layout, costs, std::move(model.graph));
    program.costs = costs_of_split(costs, program.training.split, program.mesh.pp);
    program.cost_unit = costs.unit;
    program.cost_source = costs.source;
    program.search = layout.search;
    prepared.sources.training = std::move(model.source);
    if (data.validation) {
        LoadedModel twin = load_torchscript(
            archive, torchscript_options(plan, program.fields, program.microbatch_size, /*training=*/false));
        program.evaluation = evaluation_phase(layout.plan, std::move(twin.graph), program.training);
        prepared.sources.evaluation = std::move(twin.source);
    }
    return prepared;
}

Program reference_program(const Program& program) {
    Program reference = program;
    reference.mesh = {1, 1, 1};
    reference.costs = {};
    reference.search.reset();
    reference.training = one_stage(program.training, "1F1B");
    if (program.evaluation) reference.evaluation = one_stage(*program.evaluation, "FORWARD_ONLY");
    return reference;
}

Sources open_sources(const Plan& plan, const Program& program) {
    const auto archive = std::make_shared<const Archive>(plan.model.file);
    const auto open = [&](bool training, const Graph& planned) {
        Digest digest;
        auto source = open_torchscript(
            archive, torchscript_options(plan, program.fields, program.microbatch_size, training), digest);
        if (digest == planned.digest) return source;
        throw Error(ErrorKind::RanksDisagree, "this rank reads another model file than rank 0 (digest " +
                                                  to_hex(digest) + ", rank 0 has " + to_hex(planned.digest) +
                                                  "); make " + plan.model.file + " the same on every machine");
    };
    Sources sources;
    sources.training = open(true, program.training.graph);
    if (program.evaluation) sources.evaluation = open(false, program.evaluation->graph);
    return sources;
}

}  // namespace vpp
