#include "schedule/checker.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "base/error.hpp"
#include "base/units.hpp"
#include "schedule/deadlock.hpp"
#include "schedule/edges.hpp"
#include "schedule/messages.hpp"
#include "schedule/size.hpp"

namespace vpp {

namespace {

constexpr int kNowhere = -1;

std::string text(int number) {
    return std::to_string(number);
}

/// Where the computing actions of one stage and microbatch stand in their rank's list, by ActionKind.
struct Places {
    std::array<int, 4> at{kNowhere, kNowhere, kNowhere, kNowhere};

    int& operator[](ActionKind kind) { return at[static_cast<size_t>(kind)]; }
    int operator[](ActionKind kind) const { return at[static_cast<size_t>(kind)]; }
    bool has(ActionKind kind) const { return (*this)[kind] != kNowhere; }
    int input_gradient() const { return has(ActionKind::B) ? (*this)[ActionKind::B] : (*this)[ActionKind::I]; }
    int weight_gradient() const { return has(ActionKind::B) ? (*this)[ActionKind::B] : (*this)[ActionKind::W]; }
};

/// Where the two ends of a message stand in the lists of their ranks.
struct MessagePlaces {
    int send = kNowhere;
    int receive = kNowhere;
};

class Checker {
  public:
    Checker(const Schedule& schedule, const std::vector<ScheduleEdge>& edges, const CheckOptions& options)
        : schedule_(schedule),
          options_(options),
          routes_(routes_of(edges, schedule.num_stages(), schedule.forward_only)) {}

    ScheduleFacts run() {
        check_shape();
        for (const auto& group :
             {&Checker::check_computing, &Checker::check_messages, &Checker::check_channels, &Checker::check_ends}) {
            (this->*group)();
            if (!problems_.empty()) throw Error(ErrorKind::Plan, problems_);
        }
        facts_.peak_in_flight = peak_in_flight(schedule_);
        return facts_;
    }

  private:
    void add_problem(const std::string& message) {
        if (problems_.size() < kMostProblems) {
            problems_.push_back({"schedule " + printable(schedule_.name) + ": " + message, std::nullopt});
        }
    }

    int rank_of(int stage) const { return schedule_.rank_of_stage[static_cast<size_t>(stage)]; }
    bool is_stage(int stage) const { return stage >= 0 && stage < schedule_.num_stages(); }
    bool is_microbatch(int i) const { return i >= 0 && i < schedule_.num_microbatches; }
    /// The entry of (row, microbatch) in an array of rows with M entries each.
    size_t entry(size_t row, int microbatch) const {
        return row * static_cast<size_t>(schedule_.num_microbatches) + static_cast<size_t>(microbatch);
    }
    Places& places(int stage, int microbatch) { return places_[entry(static_cast<size_t>(stage), microbatch)]; }

    void check_shape() {
        const auto require = [&](bool condition, const std::string& message) {
            if (!condition) throw Error(ErrorKind::Plan, "schedule " + printable(schedule_.name) + ": " + message);
        };
        const int num_ranks = schedule_.num_ranks, num_microbatches = schedule_.num_microbatches;
        require(num_ranks >= 1 && num_microbatches >= 1, "it needs at least one rank and one microbatch");
        require(schedule_.actions.size() == static_cast<size_t>(num_ranks),
                "it has lists for " + counted_text(static_cast<int64_t>(schedule_.actions.size()), "rank") +
                    " (expected " + text(num_ranks) + ", the number of ranks)");
        require(schedule_.num_stages() >= 1 && schedule_.num_stages() <= kMostStageMicrobatches / num_microbatches,
                "stages x microbatches is " + text(schedule_.num_stages()) + " x " + text(num_microbatches) +
                    " (expected 1 to " + std::to_string(kMostStageMicrobatches) + ")");
        for (int stage = 0; stage < schedule_.num_stages(); ++stage) {
            require(rank_of(stage) >= 0 && rank_of(stage) < num_ranks, "stage " + text(stage) + " is placed on rank " +
                                                                           text(rank_of(stage)) + " (expected 0 to " +
                                                                           text(num_ranks - 1) + ")");
        }
    }

    // Group 2: computing actions.

    void check_computing() {
        places_.resize(static_cast<size_t>(schedule_.num_stages()) * static_cast<size_t>(schedule_.num_microbatches));
        reduce_place_.assign(static_cast<size_t>(schedule_.num_stages()), kNowhere);
        for (int rank = 0; rank < schedule_.num_ranks; ++rank) {
            const std::vector<Action>& list = schedule_.actions[static_cast<size_t>(rank)];
            for (size_t index = 0; index < list.size(); ++index) {
                if (!is_transfer(list[index].kind)) record_computing(rank, static_cast<int>(index), list[index]);
                if (list[index].paired) check_pair(rank, index);
            }
        }
        if (!problems_.empty()) return;
        for (int stage = 0; stage < schedule_.num_stages(); ++stage) check_stage(stage);
    }

    void record_computing(int rank, int index, const Action& action) {
        const auto problem = [&](const std::string& what) { add_problem(to_text(action) + what); };
        if (!is_stage(action.stage)) {
            return problem(" on rank " + text(rank) + " names a stage that is not there (stages 0 to " +
                           text(schedule_.num_stages() - 1) + ")");
        }
        if (rank_of(action.stage) != rank) {
            return problem(" is on rank " + text(rank) + " (expected rank " + text(rank_of(action.stage)) +
                           ", where stage " + text(action.stage) + " is)");
        }
        const bool reduces = action.kind == ActionKind::ReduceGrad;
        if (!reduces && !is_microbatch(action.microbatch)) {
            return problem(" names a microbatch that is not there (microbatches 0 to " +
                           text(schedule_.num_microbatches - 1) + ")");
        }
        int& place = reduces ? reduce_place_[static_cast<size_t>(action.stage)]
                             : places(action.stage, action.microbatch)[action.kind];
        if (place != kNowhere) {
            return problem(" is there twice (actions " + text(place) + " and " + text(index) + " of rank " +
                           text(rank) + ")");
        }
        place = index;
        facts_.num_computing += reduces ? 0 : 1;
    }

    void check_pair(int rank, size_t index) {
        const std::vector<Action>& list = schedule_.actions[static_cast<size_t>(rank)];
        const Action& first = list[index];
        const auto problem = [&](const std::string& what) {
            add_problem(to_text(first) + " (action " + std::to_string(index) + " of rank " + text(rank) +
                        ") begins a pair " + what);
        };
        const auto is_half = [](const Action& action) {
            return action.kind == ActionKind::F || gives_input_gradient(action.kind);
        };
        if (!is_half(first)) return problem("but is no F, B or I");
        if (index + 1 == list.size()) return problem("without a second action");
        const Action& second = list[index + 1];
        const bool opposite = is_half(second) && (first.kind == ActionKind::F) != (second.kind == ActionKind::F);
        if (!opposite) return problem("with " + to_text(second) + " (expected an F beside a B or I)");
        if (second.paired) return problem("with " + to_text(second) + ", which begins a pair itself");
        if (first.stage == second.stage && first.microbatch == second.microbatch) {
            problem("with " + to_text(second) + ", which needs its result; they run together");
        }
    }

    void check_stage(int stage) {
        int last_forward = kNowhere, last_weight_gradient = kNowhere;
        for (int i = 0; i < schedule_.num_microbatches; ++i) {
            const Places& at = places(stage, i);
            if (!check_complete(stage, i, at)) continue;
            if (at[ActionKind::F] < last_forward) {
                add_problem(text(stage) + "F" + text(i) + " comes before " + text(stage) + "F" + text(i - 1) +
                            "; the forwards of a stage must be in microbatch order");
            }
            last_forward = at[ActionKind::F];
            last_weight_gradient = std::max(last_weight_gradient, at.weight_gradient());
            if (schedule_.forward_only) continue;
            if (at.input_gradient() < at[ActionKind::F]) {
                add_problem(text(stage) + (at.has(ActionKind::B) ? "B" : "I") + text(i) + " comes before " +
                            text(stage) + "F" + text(i));
            }
            if (at.has(ActionKind::W) && at[ActionKind::W] < at[ActionKind::I]) {
                add_problem(text(stage) + "W" + text(i) + " comes before " + text(stage) + "I" + text(i));
            }
        }
        const int reduce = reduce_place_[static_cast<size_t>(stage)];
        if (options_.reduces && reduce == kNowhere) add_problem(text(stage) + "REDUCE_GRAD is missing");
        if (reduce != kNowhere && reduce < last_weight_gradient) {
            add_problem(text(stage) + "REDUCE_GRAD comes before the stage's last weight gradient");
        }
    }

    bool check_complete(int stage, int microbatch, const Places& at) {
        const bool f = at.has(ActionKind::F), b = at.has(ActionKind::B);
        const bool i = at.has(ActionKind::I), w = at.has(ActionKind::W);
        const char* problem = nullptr;
        if (!f) {
            problem = "F is missing";
        } else if (schedule_.forward_only) {
            if (b || i || w) problem = "there is a backward in a forward-only schedule";
        } else if (b) {
            if (i || w) problem = "there is B beside I or W (expected B alone, or I and W)";
        } else if (!(i && w)) {
            problem = i ? "W is missing" : w ? "I is missing" : "B is missing (or I and W)";
        }
        if (problem) add_problem("stage " + text(stage) + ", microbatch " + text(microbatch) + ": " + problem);
        return !problem;
    }

    // Group 3: messages.

    void check_messages() {
        std::vector<int> ids;
        for (const Route& route : routes_) ids.push_back(route.edge);
        edges_ = EdgeNumbers(ids);
        route_of_.assign(edges_.size() * 2, kNowhere);
        for (size_t k = 0; k < routes_.size(); ++k) {
            const auto edge = static_cast<size_t>(edges_.find(routes_[k].edge));
            route_of_[edge * 2 + (routes_[k].gradient ? 1 : 0)] = static_cast<int>(k);
        }
        messages_.resize(routes_.size() * static_cast<size_t>(schedule_.num_microbatches));
        for (int rank = 0; rank < schedule_.num_ranks; ++rank) {
            const std::vector<Action>& list = schedule_.actions[static_cast<size_t>(rank)];
            for (size_t index = 0; index < list.size(); ++index) {
                if (is_transfer(list[index].kind)) record_transfer(rank, static_cast<int>(index), list[index]);
            }
        }
        if (!problems_.empty()) return;
        for (size_t k = 0; k < routes_.size(); ++k) {
            const Route& route = routes_[k];
            const bool on_one_rank = rank_of(route.from) == rank_of(route.to);
            for (int i = 0; i < schedule_.num_microbatches; ++i) {
                on_one_rank ? check_hand_over(route, i) : check_message(route, i, messages_[entry(k, i)]);
            }
        }
    }

    /// Which of routes_ a transfer belongs to.
    int find_route(const Action& transfer) const {
        const int edge = edges_.find(transfer.edge);
        if (edge == EdgeNumbers::kNone) return kNowhere;
        return route_of_[static_cast<size_t>(edge) * 2 + (carries_gradient(transfer.kind) ? 1 : 0)];
    }

    void record_transfer(int rank, int index, const Action& action) {
        const auto problem = [&](const std::string& what) {
            add_problem(to_text(action) + " (action " + text(index) + " of rank " + text(rank) + ", edge " +
                        text(action.edge) + ") " + what);
        };
        const int number = find_route(action);
        if (number == kNowhere) return problem("names an edge that carries nothing this way");
        const Route& route = routes_[static_cast<size_t>(number)];
        if (!is_microbatch(action.microbatch)) {
            return problem("names a microbatch that is not there (microbatches 0 to " +
                           text(schedule_.num_microbatches - 1) + ")");
        }
        const int here = is_send(action.kind) ? route.from : route.to;
        const int there = is_send(action.kind) ? route.to : route.from;
        if (action.stage != here) return problem("has the wrong stage (expected stage " + text(here) + ")");
        if (rank != rank_of(here)) return problem("is on the wrong rank (expected rank " + text(rank_of(here)) + ")");
        if (rank_of(there) == rank) {
            return problem("is a transfer from a rank to itself; values on one rank are handed over directly");
        }
        if (action.peer != rank_of(there)) {
            return problem("has the wrong peer (expected rank " + text(rank_of(there)) + ", where stage " +
                           text(there) + " is)");
        }
        MessagePlaces& message = messages_[entry(static_cast<size_t>(number), action.microbatch)];
        int& place = is_send(action.kind) ? message.send : message.receive;
        if (place != kNowhere) return problem("is there twice");
        place = index;
    }

    /// The place of the action that makes (at stage `from`) or takes (at stage `to`) what a route carries.
    int end_place(const Route& route, int stage, int microbatch) {
        const Places& at = places(stage, microbatch);
        if (route.tied) return at.weight_gradient();
        return route.gradient ? at.input_gradient() : at[ActionKind::F];
    }

    std::string route_text(const Route& route, int microbatch) const {
        return std::string(route.gradient ? "the gradient" : "the value") + " of edge " + text(route.edge) +
               ", microbatch " + text(microbatch) + ", from stage " + text(route.from) + " (rank " +
               text(rank_of(route.from)) + ") to stage " + text(route.to) + " (rank " + text(rank_of(route.to)) + ")";
    }

    void check_hand_over(const Route& route, int microbatch) {
        if (end_place(route, route.from, microbatch) < end_place(route, route.to, microbatch)) return;
        add_problem(route_text(route, microbatch) + " is used before it is made");
    }

    void check_message(const Route& route, int microbatch, const MessagePlaces& message) {
        const auto problem = [&](const char* what) { add_problem(route_text(route, microbatch) + what); };
        if (message.send == kNowhere) problem(route.gradient ? " has no SEND_B" : " has no SEND_F");
        if (message.receive == kNowhere) problem(route.gradient ? " has no RECV_B" : " has no RECV_F");
        if (message.send == kNowhere || message.receive == kNowhere) return;
        if (message.send < end_place(route, route.from, microbatch)) problem(" is sent before it is made");
        if (message.receive > end_place(route, route.to, microbatch)) problem(" is received after it is used");
        ++facts_.num_messages;
    }

    // Groups 4 and 5: the order of channels, deadlock.

    void check_channels() {
        if (!options_.ordered_channels) return;
        if (const std::string crossing = crossing_text(schedule_); !crossing.empty()) add_problem(crossing);
    }

    void check_ends() {
        std::string deadlock = deadlock_text(schedule_, Sends::Buffered);
        if (deadlock.empty() && options_.rendezvous) deadlock = deadlock_text(schedule_, Sends::Rendezvous);
        if (!deadlock.empty()) add_problem(deadlock);
    }

    const Schedule& schedule_;
    const CheckOptions options_;
    const std::vector<Route> routes_;
    std::vector<Places> places_;           // [stage][microbatch]
    std::vector<int> reduce_place_;        // [stage]
    EdgeNumbers edges_;                    // of the routes
    std::vector<int> route_of_;            // [edge][value or gradient]
    std::vector<MessagePlaces> messages_;  // [route][microbatch]
    std::vector<Problem> problems_;
    ScheduleFacts facts_;
};

}  // namespace

ScheduleFacts check_schedule(const Schedule& lowered, const std::vector<ScheduleEdge>& edges,
                             const CheckOptions& options) {
    return Checker(lowered, edges, options).run();
}

}  // namespace vpp
