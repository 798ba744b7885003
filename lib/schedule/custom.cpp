#include "schedule/custom.hpp"

#include <algorithm>
#include <span>

#include "base/error.hpp"
#include "base/few.hpp"
#include "schedule/edges.hpp"
#include "schedule/lowering.hpp"
#include "schedule/size.hpp"

namespace vpp {

namespace {

/// Turns the cells SEND and RECV of a lowered file into transfers of edges.
class Resolver {
  public:
    Resolver(const ScheduleFile& file, const std::vector<ScheduleEdge>& edges)
        : file_(file),
          routes_(routes_by_stage(routes_of(edges, file.schedule.num_stages(), file.schedule.forward_only),
                                  file.schedule.num_stages())) {}

    Schedule run() {
        Schedule resolved = file_.schedule;
        for (size_t rank = 0; rank < resolved.actions.size(); ++rank) {
            std::vector<Action> cells;
            cells.swap(resolved.actions[rank]);
            for (size_t i = 0; i < cells.size(); ++i) {
                if (is_transfer(cells[i].kind)) {
                    append(cells[i], rank, i, resolved.actions[rank]);
                } else {
                    resolved.actions[rank].push_back(cells[i]);
                }
            }
            add_tied(resolved.actions[rank]);
        }
        if (!problems_.empty()) throw Error(ErrorKind::BadData, problems_);
        return resolved;
    }

  private:
    int rank_of(int stage) const { return file_.schedule.rank_of_stage[static_cast<size_t>(stage)]; }

    const std::vector<Route>& routes_of_kind(const Action& transfer) const {
        const StageRoutes& routes = routes_[static_cast<size_t>(transfer.stage)];
        if (carries_gradient(transfer.kind)) return is_send(transfer.kind) ? routes.gradients_out : routes.gradients_in;
        return is_send(transfer.kind) ? routes.values_out : routes.values_in;
    }
    int peer_of(const Action& transfer, const Route& route) const {
        return rank_of(is_send(transfer.kind) ? route.to : route.from);
    }

    void append(const Action& cell, size_t rank, size_t index, std::vector<Action>& list) {
        std::vector<int> peers;
        const size_t before = list.size();
        for (const Route& route : routes_of_kind(cell)) {
            const int peer = peer_of(cell, route);
            if (peer == static_cast<int>(rank)) continue;
            if (std::find(peers.begin(), peers.end(), peer) == peers.end()) peers.push_back(peer);
            if (cell.peer < 0 || cell.peer == peer) {
                list.push_back({cell.kind, cell.stage, cell.microbatch, route.edge, peer});
            }
        }
        if (list.size() == before) return add_problem(cell, rank, index, nothing_text(cell, peers));
        if (cell.peer < 0 && peers.size() > 1) add_problem(cell, rank, index, several_text(cell, peers));
    }

    /// Whoever lowered the file knew nothing of the model's tied parameters: their gradients go as in lower.
    void add_tied(std::vector<Action>& list) const {
        std::vector<Action> without;
        without.swap(list);
        for (size_t i = 0; i < without.size();) {
            const size_t end = std::min(without.size(), i + (without[i].paired ? 2 : 1));
            const std::span<const Action> together(without.begin() + static_cast<std::ptrdiff_t>(i), end - i);
            for (const Action& action : together) append_tied(action, ActionKind::RecvB, list);
            list.insert(list.end(), together.begin(), together.end());
            for (i = end; i < without.size() && is_send(without[i].kind); ++i) list.push_back(without[i]);
            for (const Action& action : together) append_tied(action, ActionKind::SendB, list);
        }
    }

    void append_tied(const Action& action, ActionKind kind, std::vector<Action>& list) const {
        if (!gives_weight_gradient(action.kind)) return;
        const StageRoutes& routes = routes_[static_cast<size_t>(action.stage)];
        for (const Route& route : is_send(kind) ? routes.tied_out : routes.tied_in) {
            const Action transfer{kind, action.stage, action.microbatch, route.edge};
            const int peer = peer_of(transfer, route);
            if (peer != rank_of(action.stage))
                list.push_back({kind, action.stage, action.microbatch, route.edge, peer});
        }
    }

    void add_problem(const Action& cell, size_t rank, size_t index, const std::string& what) {
        if (problems_.size() >= kMostProblems) return;
        const int number = file_.cells[rank][index];
        problems_.push_back(
            {"cell " + std::to_string(number) + " '" + csv_cell_text(cell, cell.peer >= 0) + "': " + what,
             SourcePosition{file_.source, static_cast<int>(rank) + 1, number, ""}});
    }

    static std::string nothing_text(const Action& cell, const std::vector<int>& peers) {
        const std::string stage = "stage " + std::to_string(cell.stage);
        const std::string what = carries_gradient(cell.kind) ? "gradient" : "value";
        const std::string way = is_send(cell.kind) ? " goes from " + stage + " to " : " comes to " + stage + " from ";
        if (cell.peer < 0 || peers.empty()) {
            return "no " + what + way + "another rank; what stays on a rank is handed over without a transfer";
        }
        return "no " + what + way + "rank " + std::to_string(cell.peer) + " (expected " + ranks_text(peers) + ")";
    }
    static std::string several_text(const Action& cell, std::vector<int> peers) {
        Action first = cell, second = cell;
        first.peer = peers[0];
        second.peer = peers[1];
        return "the stage has transfers of this kind with " + ranks_text(peers) +
               "; name the rank: " + csv_cell_text(first, true) + "," + csv_cell_text(second, true);
    }

    const ScheduleFile& file_;
    std::vector<StageRoutes> routes_;
    std::vector<Problem> problems_;
};

/// A file of computing actions loses its REDUCE_GRAD before it is proved, so their places are looked at here.
void check_reductions(const ScheduleFile& file) {
    std::vector<Problem> problems;
    std::vector<bool> reduced(static_cast<size_t>(file.schedule.num_stages()), false);
    std::vector<bool> has_later = reduced;  // a weight gradient; a stage stands in one row only
    for (size_t rank = 0; rank < file.schedule.actions.size(); ++rank) {
        const std::vector<Action>& list = file.schedule.actions[rank];
        for (size_t i = list.size(); i-- > 0;) {
            const auto stage = static_cast<size_t>(list[i].stage);
            if (gives_weight_gradient(list[i].kind)) has_later[stage] = true;
            if (list[i].kind != ActionKind::ReduceGrad) continue;
            const char* what = has_later[stage] ? "it comes before the stage's last weight gradient"
                               : reduced[stage] ? "the stage has another behind it"
                                                : nullptr;
            reduced[stage] = true;
            if (!what || problems.size() >= kMostProblems) continue;
            const int number = file.cells[rank][i];
            problems.push_back({"cell " + std::to_string(number) + " '" + csv_cell_text(list[i], false) + "': " + what,
                                SourcePosition{file.source, static_cast<int>(rank) + 1, number, ""}});
        }
    }
    if (!problems.empty()) throw Error(ErrorKind::BadData, problems);
}

}  // namespace

ProvedSchedule prove_schedule_file(const ScheduleFile& file, const std::vector<ScheduleEdge>& edges,
                                   const CheckOptions& options) {
    ProvedSchedule proved;
    if (!file.is_lowered) check_reductions(file);
    LoweringOptions lowering;
    if (options.rendezvous) lowering.order = MessageOrder::Global;
    try {
        proved.lowered =
            file.is_lowered ? Resolver(file, edges).run() : lower(computing_part(file.schedule), edges, lowering);
        proved.facts = check_schedule(proved.lowered, edges, options);
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::Plan) throw;
        std::vector<Problem> problems = error.problems();
        for (Problem& problem : problems) {
            if (!problem.position) problem.position = SourcePosition{file.source, 0, 0, ""};
        }
        throw Error(ErrorKind::BadData, problems);
    }
    return proved;
}

Schedule computing_part(const Schedule& schedule) {
    Schedule part = schedule;
    for (std::vector<Action>& list : part.actions) {
        list.erase(std::remove_if(list.begin(), list.end(), [](const Action& a) { return !is_computing(a.kind); }),
                   list.end());
    }
    return part;
}

Schedule part_with_cells(const Schedule& lowered, const std::vector<ScheduleEdge>& edges) {
    Schedule part = lowered;
    const auto is_tied = [&](const Action& action) {
        return is_transfer(action.kind) && std::any_of(edges.begin(), edges.end(), [&](const ScheduleEdge& edge) {
                   return edge.tied && edge.id == action.edge;
               });
    };
    for (std::vector<Action>& list : part.actions) std::erase_if(list, is_tied);
    return part;
}

}  // namespace vpp
