#include "schedule/search_seeds.hpp"

#include <algorithm>
#include <sstream>

#include "base/error.hpp"
#include "schedule/edges.hpp"
#include "schedule/generators.hpp"
#include "schedule/list_order.hpp"
#include "schedule/lowering.hpp"
#include "schedule/placement.hpp"
#include "schedule/simulator.hpp"

namespace vpp {

namespace {

void check_limit(const std::optional<double>& memory_limit) {
    if (!memory_limit || *memory_limit >= 1) return;
    std::ostringstream got;
    got << *memory_limit;
    throw Error(ErrorKind::Plan, "every rank holds at least one microbatch (got memory_limit = " + got.str() +
                                     ", expected at least 1); try memory_limit = 1");
}

class SeedCollector {
  public:
    explicit SeedCollector(const SeedRequest& request)
        : request_(request), most_held_(most_held(size(), request.schedule.memory_limit)) {}

    std::vector<SearchSeed> run() {
        for (const ScheduleKind& kind : schedule_kinds()) {
            const int v = size().stages_per_rank;
            const bool fits = kind.trains && !kind.is_other_spelling() && kind.fewest_per_rank <= v &&
                              v <= kind.most_per_rank && (request_.split_backward || !kind.splits_backward);
            if (!fits) continue;
            for (const std::optional<double>& limit : limits()) try_groups(kind, limit);
        }
        add_lists();
        return std::move(found_);
    }

  private:
    const ScheduleSize& size() const { return request_.schedule.size; }

    /// What to tell generators about memory; none comes first, so that plain names are kept for the usual form.
    std::vector<std::optional<double>> limits() const {
        if (request_.schedule.memory_limit) return {std::nullopt, request_.schedule.memory_limit};
        return {std::nullopt, 2.0 * size().num_ranks, static_cast<double>(size().num_microbatches)};
    }

    void try_groups(const ScheduleKind& kind, const std::optional<double>& limit) {
        const std::optional<Schedule> made = make(kind, limit, request_.schedule.interleave_group);
        if (!made) return;
        const bool has_groups = size().stages_per_rank > 1 && !request_.schedule.interleave_group &&
                                made->rank_of_stage == place_stages(Placement::Loop, size());
        add(*made, name_of(kind, limit, request_.schedule.interleave_group));
        if (!has_groups) return;
        for (int group : {size().num_ranks, 2 * size().num_ranks, size().num_microbatches}) {
            const std::optional<Schedule> grouped = make(kind, limit, group);
            if (grouped) add(*grouped, name_of(kind, limit, group));
        }
    }

    void add_lists() {
        const bool one = size().stages_per_rank == 1;  // where both placements are the same
        add(make_list_order(request_.schedule, Placement::Loop, request_.split_backward), list_name("loop"), false);
        if (one) return;
        add(make_list_order(request_.schedule, Placement::V, request_.split_backward), list_name("v placement"), false);
    }

    std::string list_name(const std::string& placement) const {
        return "a plain list (v " + std::to_string(size().stages_per_rank) + ", " + placement + ')';
    }

    std::optional<Schedule> make(const ScheduleKind& kind, const std::optional<double>& limit,
                                 const std::optional<int>& group) const {
        ScheduleRequest request = request_.schedule;
        request.memory_limit = limit;
        request.interleave_group = group;
        try {
            return kind.make(request);
        } catch (const Error& error) {
            if (error.kind() != ErrorKind::Plan) throw;
            return std::nullopt;
        }
    }

    std::string name_of(const ScheduleKind& kind, const std::optional<double>& limit,
                        const std::optional<int>& group) const {
        std::string given;
        const auto give = [&](const std::string& text) { given += (given.empty() ? "" : ", ") + text; };
        if (size().stages_per_rank > 1) give("v " + std::to_string(size().stages_per_rank));
        if (group) give("N " + std::to_string(*group));
        if (limit && !request_.schedule.memory_limit) give("limit " + std::to_string(static_cast<int>(*limit)));
        return kind.name + (given.empty() ? "" : " (" + given + ')');
    }

    void add(const Schedule& schedule, const std::string& origin, bool generated = true) {
        const std::vector<int> peaks = peak_in_flight(schedule);
        const int peak = *std::max_element(peaks.begin(), peaks.end());
        if (peak > most_held_) return;
        const bool known = std::any_of(found_.begin(), found_.end(), [&](const SearchSeed& seed) {
            return seed.schedule.rank_of_stage == schedule.rank_of_stage && seed.schedule.actions == schedule.actions;
        });
        if (known) return;
        const Schedule lowered = lower(schedule, chain_edges(schedule.num_stages()));
        const Simulation simulation = simulate(lowered, request_.schedule.costs);
        const bool by_span = request_.objective == SearchObjective::Span;
        found_.push_back({schedule, origin, by_span ? simulation.span : simulation.makespan, generated});
    }

    const SeedRequest& request_;
    int most_held_;
    std::vector<SearchSeed> found_;
};

}  // namespace

int most_held(const ScheduleSize& size, const std::optional<double>& memory_limit) {
    const int all = size.stages_per_rank * size.num_microbatches;
    if (!memory_limit || *memory_limit >= size.num_microbatches) return all;
    return static_cast<int>(std::max(*memory_limit, 0.0) * size.stages_per_rank);
}

std::vector<SearchSeed> find_seeds(const SeedRequest& request) {
    check_limit(request.schedule.memory_limit);
    return SeedCollector(request).run();
}

Schedule split_all(const Schedule& schedule) {
    Schedule split = schedule;
    for (std::vector<Action>& list : split.actions) {
        std::vector<Action> actions;
        for (Action action : list) {
            action.paired = false;
            const bool both = action.kind == ActionKind::B;
            if (both) action.kind = ActionKind::I;
            actions.push_back(action);
            if (both) actions.push_back({ActionKind::W, action.stage, action.microbatch});
        }
        list = actions;
    }
    return split;
}

}  // namespace vpp
