#include "program/prepare.hpp"

#include <algorithm>
#include <iterator>
#include <optional>

#include "base/error.hpp"
#include "graph/archive.hpp"
#include "graph/recompute.hpp"
#include "graph/split.hpp"
#include "graph/torchscript.hpp"
#include "program/custom_schedule.hpp"
#include "program/evaluation_split.hpp"
#include "program/generated_schedule.hpp"
#include "schedule/checker.hpp"
#include "schedule/forward_only.hpp"
#include "schedule/generators.hpp"
#include "schedule/lowering.hpp"

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

/// `generated`: none when the schedule is the plan's own file.
Phase training_phase(const Plan& plan, const std::optional<Schedule>& generated, Graph graph) {
    Phase phase;
    const std::vector<int> cuts = find_split(graph, plan, *plan.mesh.pp * plan.pipeline.virtual_chunks);
    phase.split = make_stages(graph, cuts, find_recomputed(graph, plan, cuts));
    phase.graph = std::move(graph);
    if (generated) {
        phase.schedule = lower_and_prove(*generated, phase.split);
        return phase;
    }
    CustomSchedule custom = read_custom_schedule(plan, schedule_edges(phase.split));
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
    std::optional<Schedule> generated;
    if (plan.pipeline.schedule_type != "CUSTOM") generated = generate_schedule(plan);
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
    program.training = training_phase(plan, generated, std::move(model.graph));
    prepared.sources.training = std::move(model.source);
    if (data.validation) {
        LoadedModel twin = load_torchscript(
            archive, torchscript_options(plan, program.fields, program.microbatch_size, /*training=*/false));
        program.evaluation = evaluation_phase(plan, std::move(twin.graph), program.training);
        prepared.sources.evaluation = std::move(twin.source);
    }
    return prepared;
}

Program reference_program(const Program& program) {
    Program reference = program;
    reference.mesh = {1, 1, 1};
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
