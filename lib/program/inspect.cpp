#include "program/inspect.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.hpp"
#include "base/units.hpp"
#include "graph/host_ops.hpp"
#include "graph/model_files.hpp"
#include "graph/recompute.hpp"
#include "graph/split.hpp"
#include "plan/value.hpp"
#include "program/estimate.hpp"
#include "program/generated_schedule.hpp"
#include "program/inspected_cuts.hpp"
#include "program/inspected_modules.hpp"
#include "program/prepare.hpp"
#include "schedule/critical_path.hpp"
#include "schedule/generators.hpp"
#include "schedule/lowering.hpp"
#include "schedule/memory.hpp"
#include "schedule/metrics.hpp"
#include "schedule/simulator.hpp"

namespace vpp {

namespace {

constexpr int kMostForecastActions = 200'000;
constexpr const char* kUndivided = "1F1B";

/// "text, 90 samples, files take turns 3.0 : 1.0, beside a share of 0.1 held out".
std::string data_text(const DataPlan& data, int64_t num_samples) {
    std::string text = data.kind + ", " + std::to_string(num_samples) + " samples";
    for (size_t i = 0; i < data.weights.size(); ++i) {
        text += (i == 0 ? ", files take turns " : " : ") + toml_text(data.weights[i]);
    }
    if (data.documents != DataPlan{}.documents) text += ", documents " + data.documents;
    if (data.val_split > 0) text += ", beside a share of " + toml_text(data.val_split) + " held out";
    for (size_t i = 0; i < data.transforms.size(); ++i) {
        text += (i == 0 ? ", transforms of " : ", ") + data.transforms[i].field;
    }
    return text;
}

class Inspector {
  public:
    Inspector(const Plan& plan, const Program& program, const InspectOptions& options)
        : plan_(plan), program_(program), options_(options), simulation_(simulate(schedule(), program.costs)) {}

    Inspection inspect() {
        add_model();
        add_run();
        add_times();
        add_ties_and_recompute();
        InspectedTree tree = inspect_modules(graph(), split(), options_.depth);
        page_.modules = std::move(tree.modules);
        page_.blocks = std::move(tree.blocks);
        page_.flows = std::move(tree.flows);
        for (int stage = 0; stage < split().num_stages(); ++stage) add_stage(stage);
        share_time();
        count_units();
        add_ranks();
        add_cards();
        add_edges();
        add_links();
        page_.cuts = inspect_cuts(graph(), split(), plan_, program_.costs);
        add_forecasts();
        return std::move(page_);
    }

  private:
    const Graph& graph() const { return program_.training.graph; }
    const Split& split() const { return program_.training.split; }
    const Schedule& schedule() const { return program_.training.schedule; }
    int rank_of(int stage) const { return schedule().rank_of_stage[static_cast<size_t>(stage)]; }
    std::vector<int> replicas(int pp_rank) const {
        return program_.mesh.replicas_of(program_.mesh.rank({pp_rank, 0, 0}));
    }

    void add_model() {
        page_.plan_file = plan_.file;
        page_.model_files = file_names(plan_);
        page_.num_ops = graph().num_ops();
        page_.legal_cuts = graph().num_legal_cuts();
        page_.commonest_refusal = graph().commonest_refusal();
        for (const StageSpec& stage : split().stages) {
            page_.num_parameters += stage.num_parameters;
            page_.parameter_bytes += stage.parameter_bytes;
            page_.buffer_bytes += stage.buffer_bytes;
            page_.flops += stage.flops;
        }
        page_.notes = graph().warnings;
        page_.digest = to_hex(digest_of(program_));
    }

    void add_run() {
        page_.data_text = data_text(plan_.data, program_.fields.num_samples);
        page_.mesh_text = program_.mesh.text();
        page_.num_ranks = program_.mesh.num_ranks();
        page_.pp = program_.mesh.pp;
        page_.dp = program_.mesh.dp;
        page_.threads = plan_.mesh.threads;
        page_.accumulate = plan_.train.accumulate;
        page_.machine = options_.machine;
        page_.transport = plan_.mesh.transport;
        page_.samples = *plan_.train.global_batch_size;
        page_.microbatch_size = program_.microbatch_size;
        page_.zero1 = plan_.mesh.zero1;
        page_.split_method = plan_.pipeline.is_by_hand() ? plan_.pipeline.mode : plan_.pipeline.split_method;
    }

    void add_times() {
        page_.schedule = schedule();
        page_.costs = program_.costs;
        page_.cost_source = program_.cost_source;
        page_.cost_unit = program_.cost_unit;
        page_.balance = program_.balance;
        page_.unit_bubble = simulate(schedule()).bubble_rate();
        const ScheduleMetrics metrics = measure_schedule(schedule(), program_.costs);
        page_.bubble = metrics.bubble_makespan;
        page_.makespan = metrics.makespan;
        add_critical_path();
        page_.even_makespan = program_.costs.units(simulate(schedule(), even_costs()).makespan);
        const bool is_comparable = program_.has_measured_costs && page_.pp > 1 && page_.accumulate == 1;
        if (is_comparable && schedule().divides_backward()) add_undivided();
    }

    void add_critical_path() {
        if (simulation_.makespan == 0) return;
        const auto share = [&](Ticks time) {
            return static_cast<double>(time) / static_cast<double>(simulation_.makespan);
        };
        const CriticalTimes times = critical_times(schedule(), critical_path(schedule(), simulation_, program_.costs));
        for (Ticks of_stage : times.of_stage) page_.critical_path.stages.push_back(share(of_stage));
        page_.critical_path.messages = share(times.of_messages);
    }

    /// 1F1B has one stage a rank, so with several it cuts anew, by the plan's own method; some cannot.
    void add_undivided() {
        double whole = 0, halves = 0;
        for (const StageCosts& stage : program_.costs.stages) {
            whole += static_cast<double>(stage.backward);
            halves += static_cast<double>(stage.input_gradient + stage.weight_gradient);
        }
        if (whole > 0) page_.halves_over_whole = halves / whole;
        if (split().num_stages() == page_.pp) {
            const Schedule compute = make_schedule(kUndivided, page_.pp, 1, schedule().num_microbatches);
            const Simulation step = simulate(lower(compute, schedule_edges(split())), program_.costs);
            page_.undivided_makespan = program_.costs.units(step.makespan);
            return;
        }
        Plan plan = plan_;
        plan.pipeline.schedule_type = kUndivided;
        plan.pipeline.virtual_chunks = 1;
        plan.pipeline.choose_virtual_chunks = false;
        plan.pipeline.memory_limit.reset();
        try {
            const Program other = with_layout(program_, plan, std::nullopt);
            page_.undivided_makespan = other.costs.units(simulate(other.training.schedule, other.costs).makespan);
        } catch (const Error& error) {
            if (error.kind() != ErrorKind::Plan) throw;
        }
    }

    /// Every stage costs what a mean one does.
    ScheduleCosts even_costs() const {
        ScheduleCosts even = program_.costs;
        StageCosts sum{0, 0, 0, 0};
        for (const StageCosts& stage : even.stages) {
            sum.forward += stage.forward;
            sum.backward += stage.backward;
            sum.input_gradient += stage.input_gradient;
            sum.weight_gradient += stage.weight_gradient;
        }
        const auto count = static_cast<Ticks>(std::max<size_t>(1, even.stages.size()));
        for (StageCosts& stage : even.stages) {
            stage = {sum.forward / count, sum.backward / count, sum.input_gradient / count,
                     sum.weight_gradient / count};
        }
        return even;
    }

    void add_ties_and_recompute() {
        page_.num_ties = static_cast<int>(
            std::count_if(split().edges.begin(), split().edges.end(), [](const Edge& edge) { return edge.is_tied(); }));
        page_.exact_ties = plan_.pipeline.tied_gradients == "exact";
        page_.recomputes = plan_.pipeline.recompute.what != "none";
        if (!page_.recomputes) return;
        int64_t whole = 0, kept = 0;
        int again = 0;
        for (const SegmentSpec& segment : split().segments) {
            whole += segment.activation_bytes;
            kept += segment.recompute ? segment.input_bytes : segment.activation_bytes;
            again += segment.recompute;
        }
        page_.recompute_text = std::to_string(again) + " of " + std::to_string(split().segments.size()) +
                               " segments; a microbatch keeps at most " + bytes_text(kept) + " instead of " +
                               bytes_text(whole) + (plan_.pipeline.recompute.except_last ? "; not the last one" : "");
    }

    /// The computing time of a step by stage, as a part of the whole.
    void share_time() {
        std::vector<double> time(page_.stages.size(), 0);
        double all = 0;
        for (const std::vector<Action>& list : schedule().actions) {
            for (const Action& action : list) {
                if (!is_computing(action.kind)) continue;
                const auto ticks = static_cast<double>(program_.costs.of_stage(action.stage).of(action.kind));
                time[static_cast<size_t>(action.stage)] += ticks;
                all += ticks;
            }
        }
        for (size_t i = 0; i < time.size(); ++i) page_.stages[i].time_share = all > 0 ? time[i] / all : 0;
    }

    void add_stage(int index) {
        const StageSpec& spec = split().stages[static_cast<size_t>(index)];
        InspectedStage stage;
        stage.rank = rank_of(index);
        stage.ranks = replicas(stage.rank);
        stage.first_op = spec.ops.begin;
        stage.last_op = spec.ops.end - 1;
        stage.num_parameters = spec.num_parameters;
        stage.weight_bytes = spec.parameter_bytes;
        for (int parameter : spec.parameters) {
            const GraphParameter& entry = graph().parameters[static_cast<size_t>(parameter)];
            if (!entry.requires_grad) continue;
            stage.gradient_bytes += entry.bytes();
            stage.optimizer_bytes += entry.bytes() * optimizer_state_tensors(plan_.optimizer, entry.name);
        }
        stage.buffer_bytes = spec.buffer_bytes;
        stage.activation_bytes = kept_bytes(index);
        stage.receive_bytes = received_bytes(index);
        stage.flops = spec.flops;
        stage.flops_share = page_.flops > 0 ? spec.flops / page_.flops : 0;
        stage.modules = modules_of_stage(graph(), spec);
        page_.stages.push_back(std::move(stage));
    }

    int64_t kept_bytes(int stage) const {
        const auto [begin, end] = split().segments_of(stage);
        int64_t kept = 0;
        for (int i = begin; i < end; ++i) {
            const SegmentSpec& segment = split().segments[static_cast<size_t>(i)];
            kept += segment.recompute ? segment.input_bytes : segment.activation_bytes;
        }
        return kept;
    }

    int64_t received_bytes(int stage) const {
        int64_t bytes = 0;
        for (const Edge& edge : split().edges) {
            const bool takes_value =
                edge.consumer == stage && !edge.is_tied() && rank_of(edge.producer) != rank_of(stage);
            const bool takes_gradient = edge.has_gradient && edge.gradient_to == stage && edge.consumer != stage &&
                                        rank_of(edge.consumer) != rank_of(stage);
            bytes += (takes_value ? edge.bytes : 0) + (takes_gradient ? edge.bytes : 0);
        }
        return bytes;
    }

    void count_units() {
        const Units units = find_units(graph(), plan_.pipeline.smallest_unsplittable_units);
        std::vector<std::set<int>> stages_of(units.names.size());
        for (int op = 0; op < graph().num_ops(); ++op) {
            const int unit = units.unit_of[static_cast<size_t>(op)];
            if (unit >= 0) stages_of[static_cast<size_t>(unit)].insert(split().stage_of_op(op));
        }
        for (const std::set<int>& stages : stages_of) {
            for (int stage : stages) {
                InspectedStage& entry = page_.stages[static_cast<size_t>(stage)];
                ++(stages.size() == 1 ? entry.whole_units : entry.cut_units);
            }
        }
    }

    void add_ranks() {
        const std::vector<RankEstimate> estimates = estimate_ranks(plan_, program_);
        const std::vector<RankEstimate> recomputed = with_recompute();
        Plan shared = plan_;
        shared.mesh.zero1 = true;
        const std::vector<RankEstimate> with_zero1 = estimate_ranks(shared, program_);
        const std::vector<int64_t> receives = receive_peaks();
        const std::vector<int> in_flight = peak_in_flight(schedule());
        Ticks busy = 0;
        for (Ticks of_rank : simulation_.busy) busy += of_rank;
        for (size_t i = 0; i < estimates.size(); ++i) {
            const RankEstimate& from = estimates[i];
            InspectedRank rank;
            rank.ranks = from.ranks;
            rank.stages = from.stages;
            rank.weight_bytes = from.parameter_bytes;
            rank.gradient_bytes = from.gradient_bytes;
            rank.optimizer_bytes = from.optimizer_bytes;
            rank.buffer_bytes = from.buffer_bytes;
            rank.cast_bytes = from.cast_bytes;
            rank.activation_bytes = from.activation_bytes;
            rank.recorded_bytes = from.recorded_bytes;
            rank.receive_bytes = receives[i];
            rank.saved_copy_bytes = from.saved_copy_bytes;
            rank.input_bytes = from.input_bytes;
            rank.total_bytes = from.total_bytes() + receives[i];
            rank.recomputed_total_bytes = recomputed[i].total_bytes() + receives[i];
            rank.sent_bytes = from.sent_bytes;
            rank.replica_bytes = from.replica_bytes;
            rank.zero1_optimizer_bytes = with_zero1[i].optimizer_bytes;
            rank.unshared_optimizer_bytes = from.unshared_optimizer_bytes;
            rank.in_flight = in_flight[i];
            const auto own = static_cast<double>(simulation_.busy[i]);
            rank.busy_share = simulation_.makespan > 0 ? own / static_cast<double>(simulation_.makespan) : 0;
            rank.load = busy > 0 ? own * static_cast<double>(estimates.size()) / static_cast<double>(busy) : 1;
            page_.ranks.push_back(std::move(rank));
        }
    }

    /// What is read ahead and the copy for a save lie in the host's memory.
    void add_cards() {
        if (plan_.mesh.device == "cpu") return;
        std::vector<int64_t> kept_bytes(static_cast<size_t>(page_.num_ranks), 0), recorded_bytes = kept_bytes;
        for (const InspectedRank& rank : page_.ranks) {
            const int64_t on_card = rank.total_bytes - rank.host_bytes();
            for (int number : rank.ranks) {
                kept_bytes.at(static_cast<size_t>(number)) = on_card;
                recorded_bytes.at(static_cast<size_t>(number)) = on_card - rank.activation_bytes + rank.recorded_bytes;
            }
        }
        page_.cards = card_shares(kept_bytes, options_.machine.cards);
        if (plan_.pipeline.cuda_graphs && !plan_.pipeline.forward_only) {
            const std::vector<CardShare> replayed = card_shares(recorded_bytes, options_.machine.cards);
            for (size_t i = 0; i < replayed.size(); ++i) page_.cards[i].recorded_bytes = replayed[i].kept_bytes;
        }
        if (!page_.cards.empty() || plan_.mesh.device == "cuda") add_host_ops();
    }

    void add_host_ops() {
        for (const GraphOp& op : graph().ops) {
            const OnHost on_host = runs_on_host(op.kind);
            if (on_host == OnHost::Never) continue;
            const bool in_backward = on_host == OnHost::Backward;
            if (in_backward && plan_.pipeline.forward_only) continue;
            page_.host_ops.push_back({op.kind, op.module, in_backward});
        }
    }

    /// The estimates with recompute = "stage"; where the plan recomputes already, its own.
    std::vector<RankEstimate> with_recompute() const {
        if (page_.recomputes) return estimate_ranks(plan_, program_);
        Plan plan = plan_;
        plan.pipeline.recompute.what = "stage";
        Program program = program_;
        program.training.split = make_stages(graph(), split().cuts, find_recomputed(graph(), plan, split().cuts));
        return estimate_ranks(plan, program);
    }

    /// Buffers of messages alone.
    std::vector<int64_t> receive_peaks() const {
        MemoryModel model;
        StageMemory nothing;
        nothing.activation = nothing.weight_part = 0;
        model.stages.assign(split().stages.size(), nothing);
        for (const Edge& edge : split().edges) model.bytes_of_edge[edge.id] = edge.bytes;
        model.buffers = options_.buffers;
        return peak_memory(schedule(), schedule_edges(split()), model);
    }

    void add_edges() {
        std::map<int, int64_t> sent;
        for (const std::vector<Action>& list : schedule().actions) {
            for (const Action& action : list) {
                if (is_send(action.kind)) sent[action.edge] += edge_bytes(action.edge);
            }
        }
        for (const Edge& from : split().edges) {
            if (from.producer == from.consumer) continue;
            InspectedEdge edge;
            edge.id = from.id;
            edge.name = from.name;
            edge.producer = from.producer;
            edge.consumer = from.consumer;
            edge.tied = from.is_tied();
            edge.per_step = from.is_tied() && !from.has_gradient;
            if (from.has_gradient) edge.gradient_to = from.gradient_to;
            if (!from.is_bundle()) edge.bytes = from.bytes;
            if (from.tensor >= 0) {
                edge.type = graph().tensors[static_cast<size_t>(from.tensor)].type_text();
            }
            edge.step_bytes = sent[from.id];
            page_.edges.push_back(std::move(edge));
        }
    }

    int64_t edge_bytes(int edge) const { return split().edges[static_cast<size_t>(edge)].bytes; }

    void add_links() {
        std::map<std::pair<int, int>, InspectedLink> links;
        for (size_t rank = 0; rank < schedule().actions.size(); ++rank) {
            for (const Action& action : schedule().actions[rank]) {
                if (!is_send(action.kind)) continue;
                InspectedLink& link = links[{static_cast<int>(rank), action.peer}];
                (carries_gradient(action.kind) ? link.backward_bytes : link.forward_bytes) += edge_bytes(action.edge);
                ++link.messages;
            }
        }
        for (auto& [ends, link] : links) {
            link.from = ends.first;
            link.to = ends.second;
            page_.links.push_back(link);
        }
    }

    /// Twice, four and eight times as many microbatches, where the plan's words alone make the schedule. A step of
    /// several pipeline runs: one run of them all.
    void add_forecasts() {
        const ScheduleKind* kind = find_schedule_kind(plan_.pipeline.schedule_type);
        if (page_.pp == 1 || !kind || kind->splits_backward || kind->uses_costs) return;
        const std::vector<ScheduleEdge> edges = schedule_edges(split());
        const std::vector<int> factors = plan_.train.accumulate > 1 ? std::vector{1} : std::vector{2, 4, 8};
        for (int factor : factors) {
            Plan more = plan_;
            more.pipeline.num_microbatches = schedule().num_microbatches * factor;
            if (*more.pipeline.num_microbatches * split().num_stages() > kMostForecastActions) return;
            const std::optional<Schedule> compute = generate_schedule(more);
            if (!compute) return;
            const double bubble = simulate(lower(*compute, edges), program_.costs).bubble_rate();
            page_.more_microbatches.push_back({*more.pipeline.num_microbatches, bubble});
        }
    }

    const Plan& plan_;
    const Program& program_;
    InspectOptions options_;
    Simulation simulation_;
    Inspection page_;
};

}  // namespace

Inspection inspect_program(const Plan& plan, const Program& program, const InspectOptions& options) {
    return Inspector(plan, program, options).inspect();
}

}  // namespace vpp
