#include "app/commands/inspect_text.hpp"

#include <algorithm>
#include <iomanip>
#include <set>

#include "app/commands/inspect_search.hpp"
#include "base/units.hpp"
#include "graph/model_files.hpp"
#include "program/estimate.hpp"
#include "schedule/simulator.hpp"
#include "schedule/timeline.hpp"

namespace vpp {

namespace {

constexpr size_t kShownEdges = 40;

/// The outermost submodules whose ops a stage runs, shortened: "blocks.0 .. blocks.2".
std::string modules_of(const Graph& graph, const StageSpec& stage) {
    std::vector<std::string> names;
    for (int op = stage.ops.begin; op < stage.ops.end; ++op) {
        const std::string& module = graph.ops[static_cast<size_t>(op)].module;
        if (module.empty()) continue;
        const size_t first = module.find('.');
        const bool numbered =
            first != std::string::npos && first + 1 < module.size() && std::isdigit(module[first + 1]);
        const std::string name = numbered ? module.substr(0, module.find('.', first + 1)) : module.substr(0, first);
        if (names.empty() || names.back() != name) names.push_back(name);
    }
    if (names.empty()) return "-";
    if (names.size() == 1) return names.front();
    return names.front() + (names.size() == 2 ? ", " : " .. ") + names.back();
}

void print_model(std::ostream& out, const Plan& plan, const Program& program) {
    const Graph& graph = program.training.graph;
    int64_t parameters = 0, bytes = 0, buffers = 0;
    for (const StageSpec& stage : program.training.split.stages) {
        parameters += stage.num_parameters;
        bytes += stage.parameter_bytes;
        buffers += stage.buffer_bytes;
    }
    const int positions = graph.num_ops() - 1, legal = graph.num_legal_cuts();
    out << "model     " << file_names(plan) << "\n          " << graph.num_ops() << " ops, " << parameters
        << " parameters (" << bytes_text(bytes) << "), buffers " << bytes_text(buffers) << "\n          cuts: " << legal
        << " of " << positions << " positions are legal, " << positions - legal << " refused ("
        << fixed_text(positions ? 100.0 * (positions - legal) / positions : 0, 1) << " %)\n";
    for (const std::string& warning : graph.warnings) out << "          note: " << warning << "\n";
}

void print_ties(std::ostream& out, const Plan& plan, const Split& split) {
    const auto ties =
        std::count_if(split.edges.begin(), split.edges.end(), [](const Edge& edge) { return edge.is_tied(); });
    if (ties == 0) return;
    const bool exact = plan.pipeline.tied_gradients == "exact";
    out << "tied      " << ties << (ties == 1 ? " copy" : " copies") << " of parameters in later stages; gradients are "
        << (exact ? "summed for every microbatch, as on one device"
                  : "summed once per step: other bits than one device")
        << "\n";
}

/// What recompute keeps of a microbatch, beside what would be kept without it.
void print_recompute(std::ostream& out, const Plan& plan, const Split& split) {
    if (plan.pipeline.recompute.what == "none") return;
    int64_t whole = 0, kept = 0;
    int again = 0;
    for (const SegmentSpec& segment : split.segments) {
        whole += segment.activation_bytes;
        kept += segment.recompute ? segment.input_bytes : segment.activation_bytes;
        again += segment.recompute;
    }
    out << "recompute " << again << " of " << split.segments.size() << " segments; a microbatch keeps at most "
        << bytes_text(kept) << " instead of " << bytes_text(whole)
        << (plan.pipeline.recompute.except_last ? "; not the last one" : "") << "\n";
}

void print_run(std::ostream& out, const Plan& plan, const Program& program) {
    const Schedule& schedule = program.training.schedule;
    out << "data      " << plan.data.kind << ", " << program.fields.num_samples << " samples\n"
        << "mesh      " << program.mesh.text() << ", " << program.mesh.num_ranks()
        << " rank(s), start with: mpirun -np " << program.mesh.num_ranks() << " vpp train --config " << plan.file
        << "\n"
        << "step      " << *plan.train.global_batch_size << " samples = " << schedule.num_microbatches
        << " microbatches of " << program.microbatch_size << "\n"
        << "schedule  " << schedule.name << ", " << schedule.num_stages() << " stages, bubble "
        << fixed_text(100 * simulate(schedule).bubble_rate(), 1) << " % (F = 1, B = 2, free transfers)\n";
    print_costs_and_search(out, plan, program);
    print_ties(out, plan, program.training.split);
    print_recompute(out, plan, program.training.split);
    out << "digest    " << to_hex(digest_of(program)) << "\n\n";
}

/// "3", or of several replicas "4-7": they follow each other.
std::string ranks_text(const std::vector<int>& ranks) {
    const std::string first = std::to_string(ranks.front());
    return ranks.size() == 1 ? first : first + "-" + std::to_string(ranks.back());
}

void print_stages(std::ostream& out, const Program& program) {
    double total = 0;
    for (const StageSpec& stage : program.training.split.stages) total += stage.flops;
    out << "stage rank       ops  parameters     weights     buffers  activations   FLOPs F      %  submodules\n";
    for (int index = 0; index < program.training.split.num_stages(); ++index) {
        const StageSpec& stage = program.training.split.stages[static_cast<size_t>(index)];
        const int pp = program.training.schedule.rank_of_stage[static_cast<size_t>(index)];
        out << std::setw(5) << index << std::setw(5)
            << ranks_text(program.mesh.replicas_of(program.mesh.rank({pp, 0, 0}))) << std::setw(10)
            << (std::to_string(stage.ops.begin) + "-" + std::to_string(stage.ops.end - 1)) << std::setw(12)
            << stage.num_parameters << std::setw(12) << bytes_text(stage.parameter_bytes) << std::setw(12)
            << bytes_text(stage.buffer_bytes) << std::setw(13) << bytes_text(stage.activation_bytes) << std::setw(10)
            << count_text(stage.flops) << std::setw(7) << fixed_text(total > 0 ? 100 * stage.flops / total : 0, 1)
            << "  " << modules_of(program.training.graph, stage) << "\n";
    }
    out << "every op, parameter and buffer is in exactly one stage\n\n";
}

/// What goes along the DP axis, and what ZeRO-1 saves or would save.
void print_replicas(std::ostream& out, const Plan& plan, const Program& program,
                    const std::vector<RankEstimate>& ranks) {
    if (program.mesh.dp == 1) return;
    out << "   PP        ranks by DP  sent to replicas a step  optimizer with ZeRO-1     without\n";
    Plan shared = plan;
    shared.mesh.zero1 = true;
    const std::vector<RankEstimate> with_zero1 = estimate_ranks(shared, program);
    for (size_t pp = 0; pp < ranks.size(); ++pp) {
        out << std::setw(5) << pp << std::setw(19) << ranks_text(ranks[pp].ranks) << std::setw(25)
            << bytes_text(ranks[pp].replica_bytes) << std::setw(23) << bytes_text(with_zero1[pp].optimizer_bytes)
            << std::setw(12) << bytes_text(ranks[pp].unshared_optimizer_bytes) << "\n";
    }
    out << "replica r takes the r-th part of the batch; gradients are added in the order of the replicas"
        << (plan.mesh.zero1 ? ", each updates its share (mesh.zero1)" : "") << "\n\n";
}

void print_ranks(std::ostream& out, const Plan& plan, const Program& program) {
    out << " rank     weights   gradients   optimizer     buffers  in flight <=   save copy       total  sent a step\n";
    const std::vector<RankEstimate> ranks = estimate_ranks(plan, program);
    for (const RankEstimate& entry : ranks) {
        out << std::setw(5) << ranks_text(entry.ranks) << std::setw(12) << bytes_text(entry.parameter_bytes)
            << std::setw(12) << bytes_text(entry.gradient_bytes) << std::setw(12) << bytes_text(entry.optimizer_bytes)
            << std::setw(12) << bytes_text(entry.buffer_bytes) << std::setw(14) << bytes_text(entry.activation_bytes)
            << std::setw(12) << bytes_text(entry.saved_copy_bytes) << std::setw(12) << bytes_text(entry.total_bytes())
            << std::setw(13) << bytes_text(entry.sent_bytes) << "\n";
    }
    out << "\n";
    print_replicas(out, plan, program, ranks);
}

void print_edges(std::ostream& out, const Program& program) {
    std::vector<const Edge*> edges;
    for (const Edge& edge : program.training.split.edges) {
        if (edge.producer != edge.consumer) edges.push_back(&edge);
    }
    if (edges.empty()) return;
    out << " edge  from -> to       bytes  gradient  value\n";
    for (size_t i = 0; i < edges.size() && i < kShownEdges; ++i) {
        const Edge& edge = *edges[i];
        out << std::setw(5) << edge.id << std::setw(6) << edge.producer << " -> " << std::left << std::setw(4)
            << edge.consumer << std::right << std::setw(10) << (edge.is_bundle() ? "-" : bytes_text(edge.bytes))
            << std::setw(10) << (edge.has_gradient ? "to " + std::to_string(edge.gradient_to) : "-") << "  "
            << edge.name;
        if (edge.is_tied()) out << ", tied: stage " << edge.producer << " owns it";
        if (edge.tensor >= 0) {
            const GraphTensor& tensor = program.training.graph.tensors[static_cast<size_t>(edge.tensor)];
            out << " " << name_of(tensor.dtype) << shape_text(tensor.shape);
        }
        out << "\n";
    }
    if (edges.size() > kShownEdges) out << "  ... " << edges.size() - kShownEdges << " more (--json shows all)\n";
    out << "\n";
}

}  // namespace

void print_program(std::ostream& out, const Plan& plan, const Program& program) {
    print_model(out, plan, program);
    print_run(out, plan, program);
    print_stages(out, program);
    print_ranks(out, plan, program);
    print_edges(out, program);
    out << draw_timeline(program.training.schedule);
    out.flush();
}

}  // namespace vpp
