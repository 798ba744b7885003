#include "schedule/search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "schedule/edges.hpp"
#include "schedule/lower_bounds.hpp"
#include "schedule/lowering.hpp"
#include "schedule/merge_backward.hpp"
#include "schedule/order_search.hpp"
#include "schedule/placement.hpp"
#include "schedule/search_seeds.hpp"
#include "schedule/simulator.hpp"
#include "schedule/steady_state.hpp"
#include "schedule/tied_order.hpp"

namespace vpp {

namespace {

constexpr size_t kMostStarts = 6;        // seeds whose orders are searched
constexpr int kShortRounds = 4;          // microbatches of a short problem / ranks
constexpr int kFewIsWorthIt = 3;         // how many times as many microbatches make a short problem worth its moves
constexpr size_t kMostLengthened = 4;    // forms of one short order that are worked out
constexpr int kTemperaturePercent = 15;  // of a mean action

/// One v with its costs.
struct Candidate {
    ScheduleSize size;
    ScheduleCosts costs;
    std::optional<double> memory_limit;
    int most_held = 0;
    std::vector<ScheduleEdge> edges;  ///< the chain, then tied parameters

    bool is_tied() const { return !edges.empty() && edges.back().tied; }
};

/// An order on the way: where it came from and how good it is.
struct Found {
    Schedule schedule;
    std::string origin;
    size_t candidate = 0;
    Ticks cost = 0;
};

/// All actions one after the other have to stay far within whole numbers.
void check_precision(const Candidate& candidate, int64_t factor) {
    const ScheduleCosts& costs = candidate.costs;
    Ticks message = costs.transfer + costs.occupied;
    for (const auto& [edge, transfer] : costs.transfer_of) {
        message = std::max(message, transfer + costs.of_occupied(edge));
    }
    double work = 0;
    for (const StageCosts& stage : costs.stages) {
        const Ticks most = std::max(stage.input_gradient + stage.weight_gradient, stage.backward);
        work += static_cast<double>(stage.forward + most + 2 * message);
    }
    work *= static_cast<double>(candidate.size.num_microbatches) * static_cast<double>(factor);
    if (work < 0x1p52) return;
    throw Error(ErrorKind::Plan, "the costs have too many digits for this search; try fewer decimal places");
}

/// Costs of different v come in different units: brings them to one, exactly.
void use_common_unit(std::vector<Candidate>& candidates) {
    const auto unit = [](const Candidate& candidate) { return std::llround(candidate.costs.ticks_per_unit); };
    int64_t common = 1;
    for (Candidate& candidate : candidates) {
        if (candidate.costs.stages.empty())
            candidate.costs.stages.resize(static_cast<size_t>(candidate.size.num_stages()));
        check(static_cast<double>(unit(candidate)) == candidate.costs.ticks_per_unit, "a unit is whole ticks");
        common = std::lcm(common, unit(candidate));
    }
    for (Candidate& candidate : candidates) {
        const int64_t factor = common / unit(candidate);
        check_precision(candidate, factor);
        for (StageCosts& stage : candidate.costs.stages) {
            for (Ticks* ticks : {&stage.forward, &stage.backward, &stage.input_gradient, &stage.weight_gradient}) {
                *ticks *= factor;
            }
        }
        for (Ticks* ticks : {&candidate.costs.transfer, &candidate.costs.occupied}) *ticks *= factor;
        for (auto* by_edge : {&candidate.costs.transfer_of, &candidate.costs.occupied_of}) {
            for (auto& [edge, ticks] : *by_edge) ticks *= factor;
        }
        candidate.costs.ticks_per_unit = static_cast<double>(common);
    }
}

class Search {
  public:
    explicit Search(const SearchRequest& request) : request_(request) {
        for (int v : request.stages_per_rank) {
            const ScheduleSize size{request.num_ranks, v, request.num_microbatches};
            check_size(size);
            const auto own = request.memory_limit_of.find(v);
            const auto limit = own == request.memory_limit_of.end() ? request.memory_limit : own->second;
            candidates_.push_back({size, request.costs(size), limit, most_held(size, limit), edges_with(size)});
        }
        check(!candidates_.empty(), "a search is asked for at least one number of stages");
        use_common_unit(candidates_);
    }

    SearchResult run() {
        find_best();
        join_halves();
        fit_to_tied();
        return result();
    }

  private:
    std::vector<ScheduleEdge> edges_with(const ScheduleSize& size) const {
        std::vector<ScheduleEdge> edges = chain_edges(size.num_stages());
        const auto tied = request_.tied_edges.find(size.stages_per_rank);
        if (tied != request_.tied_edges.end()) edges.insert(edges.end(), tied->second.begin(), tied->second.end());
        return edges;
    }

    void find_best() {
        collect_seeds();
        best_ = *std::min_element(seeds_.begin(), seeds_.end(), cheaper_or_smaller);
        bound_ = lower_bound();
        search_shorter();
        if (best_.cost > bound_) search_orders();
    }

    static bool cheaper(const Found& one, const Found& other) { return one.cost < other.cost; }

    /// Of two that cost the same the one with fewer stages, then the one that holds less.
    static bool cheaper_or_smaller(const Found& one, const Found& other) {
        if (one.cost != other.cost) return one.cost < other.cost;
        const auto held = [](const Found& found) {
            const std::vector<int> peaks = peak_in_flight(found.schedule);
            return *std::max_element(peaks.begin(), peaks.end());
        };
        return one.candidate != other.candidate ? one.candidate < other.candidate : held(one) < held(other);
    }

    void collect_seeds() {
        for (size_t c = 0; c < candidates_.size(); ++c) {
            const Candidate& candidate = candidates_[c];
            const ScheduleRequest made{
                .size = candidate.size, .costs = candidate.costs, .memory_limit = candidate.memory_limit};
            add_seeds(c, {made, request_.objective, request_.split_backward});
            // With a tied parameter only a whole B is sure to fit the tightest limit.
            if (candidate.is_tied() && request_.split_backward) add_seeds(c, {made, request_.objective, false});
        }
    }

    void add_seeds(size_t candidate, const SeedRequest& request) {
        for (SearchSeed& seed : find_seeds(request)) {
            seeds_.push_back({std::move(seed.schedule), std::move(seed.origin), candidate, seed.cost});
            if (!seed.generated) continue;
            const std::optional<Found> found = fitted(seeds_.back());
            if (found && (!best_generated_ || cheaper(*found, *best_generated_))) best_generated_ = found;
        }
    }

    /// In the order that tied parameters ask for; none when it holds too much.
    std::optional<Found> fitted(const Found& found) const {
        const Candidate& candidate = candidates_[found.candidate];
        if (!candidate.is_tied()) return found;
        Found ordered = found;
        ordered.schedule = order_tied(found.schedule, candidate.edges, candidate.costs);
        if (!fits(ordered.schedule, candidate)) return std::nullopt;
        const Simulation simulation = simulate(lower(ordered.schedule, candidate.edges), candidate.costs);
        ordered.cost = request_.objective == SearchObjective::Makespan ? simulation.makespan : simulation.span;
        return ordered;
    }

    void fit_to_tied() {
        if (request_.tied_edges.empty()) return;
        std::vector<Found> all{best_};
        for (const auto* found : {&improved_, &seeds_}) all.insert(all.end(), found->begin(), found->end());
        std::vector<Found> fitting;
        for (const Found& found : all) {
            if (std::optional<Found> ordered = fitted(found)) fitting.push_back(std::move(*ordered));
        }
        check(!fitting.empty(), "a plain list with whole backwards fits every limit");
        best_ = *std::min_element(fitting.begin(), fitting.end(), cheaper_or_smaller);
    }

    BoundedProblem bounded(const Candidate& candidate, std::vector<int> rank_of_stage) const {
        return {std::move(rank_of_stage), candidate.size.num_ranks, candidate.size.num_microbatches,
                candidate.costs,          candidate.most_held,      request_.split_backward};
    }

    /// Over all orders of all candidates in both placements.
    Ticks lower_bound() const {
        Ticks bound = std::numeric_limits<Ticks>::max();
        for (const Candidate& candidate : candidates_) {
            for (Placement placement : {Placement::Loop, Placement::V}) {
                const BoundedProblem problem = bounded(candidate, place_stages(placement, candidate.size));
                bound = std::min(bound, lower_bound_of(problem, request_.objective));
            }
        }
        return bound;
    }

    /// Where there are many microbatches: most of the moves on a problem with fewer, whose best orders are then
    /// repeated in their middle. They are starts beside the seeds. A move on all takes as much longer as there are more
    /// of them; so a quarter of the time is left for those.
    void search_shorter() {
        const int all = request_.num_microbatches;
        const int few = kShortRounds * request_.num_ranks + all % request_.num_ranks;
        if (best_.cost <= bound_ || all < kFewIsWorthIt * few) return;
        SearchRequest request = request_;
        request.num_microbatches = few;
        request.moves = request_.moves - request_.moves / 4 * few / all;
        Search shorter(request);
        shorter.find_best();
        moves_ += shorter.moves_;
        for (const Found& found : shorter.improved_) add_lengthened(found);
        best_ = *std::min_element(seeds_.begin(), seeds_.end(), cheaper_or_smaller);
    }

    /// The longer form of an order that costs least: by what a few more blocks cost, then by the whole.
    void add_lengthened(const Found& shorter) {
        const Candidate& candidate = candidates_[shorter.candidate];
        const int more = candidate.size.num_microbatches - shorter.schedule.num_microbatches;
        std::vector<std::pair<Ticks, SteadyBlock>> blocks;
        for (SteadyBlock& block : find_steady_blocks(shorter.schedule, more, candidate.costs)) {
            const std::optional<Ticks> cost = estimate(shorter, block, more / block.period);
            if (cost) blocks.emplace_back(*cost, std::move(block));
        }
        std::stable_sort(blocks.begin(), blocks.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
        if (blocks.size() > kMostLengthened) blocks.resize(kMostLengthened);
        for (const auto& [cost, block] : blocks) {
            const Schedule longer = lengthen(shorter.schedule, block, more / block.period);
            if (fits(longer, candidate)) seeds_.push_back(with_cost(longer, shorter));
        }
    }

    /// The cost of a schedule with `times` more blocks, if the second of them costs what all others do.
    std::optional<Ticks> estimate(const Found& shorter, const SteadyBlock& block, int times) const {
        const Schedule one = lengthen(shorter.schedule, block, 1), two = lengthen(shorter.schedule, block, 2);
        if (!fits(two, candidates_[shorter.candidate])) return std::nullopt;
        const Ticks cost = with_cost(two, shorter).cost;
        return cost + (cost - with_cost(one, shorter).cost) * (times - 2);
    }

    static bool fits(const Schedule& schedule, const Candidate& candidate) {
        const std::vector<int> peaks = peak_in_flight(schedule);
        return *std::max_element(peaks.begin(), peaks.end()) <= candidate.most_held;
    }

    /// Half of the moves is shared by the starts, half goes on from the best of them.
    void search_orders() {
        std::vector<Found> starts = choose_starts();
        const int64_t share = (request_.moves - moves_) / 2 / static_cast<int64_t>(starts.size());
        for (Found& start : starts) start = improve(start, share);
        std::stable_sort(starts.begin(), starts.end(), cheaper);
        const auto next = std::find_if(starts.begin(), starts.end(), [&](const Found& f) { return can_improve(f); });
        if (next != starts.end()) improve(*next, request_.moves - moves_);
    }

    /// The best seed of every placement, then the best of the others. B is split where that costs nothing.
    std::vector<Found> choose_starts() const {
        std::vector<Found> sorted;
        for (const Found& seed : seeds_) {
            if (request_.split_backward) sorted.push_back(with_cost(split_all(seed.schedule), seed));
            if (!splitting_is_free(seed.candidate)) sorted.push_back(with_cost(unpaired(seed.schedule), seed));
        }
        std::stable_sort(sorted.begin(), sorted.end(), cheaper);
        std::vector<std::vector<int>> placements;
        const auto is_new = [&](const Found& found) {
            const std::vector<int>& ranks = found.schedule.rank_of_stage;
            if (std::find(placements.begin(), placements.end(), ranks) != placements.end()) return false;
            placements.push_back(ranks);
            return true;
        };
        std::stable_partition(sorted.begin(), sorted.end(), is_new);
        if (sorted.size() > kMostStarts) sorted.resize(kMostStarts);
        return sorted;
    }

    bool splitting_is_free(size_t candidate) const {
        if (!request_.split_backward) return false;
        const std::vector<StageCosts>& stages = candidates_[candidate].costs.stages;
        return std::all_of(stages.begin(), stages.end(), [](const StageCosts& stage) {
            return stage.input_gradient + stage.weight_gradient <= stage.backward;
        });
    }

    static Schedule unpaired(Schedule schedule) {
        for (std::vector<Action>& list : schedule.actions) {
            for (Action& action : list) action.paired = false;
        }
        return schedule;
    }

    /// Another form of a seed.
    Found with_cost(Schedule schedule, const Found& seed) const {
        const Candidate& candidate = candidates_[seed.candidate];
        const OrderGraph graph = make_order_graph(schedule, candidate.costs);
        const IncrementalSimulator simulator(graph, nodes_of(graph, schedule), request_.objective, candidate.most_held);
        return {std::move(schedule), seed.origin, seed.candidate, simulator.cost()};
    }

    Ticks bound_of(const Found& start) const {
        const BoundedProblem problem = bounded(candidates_[start.candidate], start.schedule.rank_of_stage);
        return lower_bound_of(problem, request_.objective);
    }
    /// Whether anything better than the best can come of a start.
    bool can_improve(const Found& start) const { return bound_of(start) < best_.cost; }

    /// Searches on from a start; keeps the best of all.
    Found improve(const Found& start, int64_t moves) {
        const Candidate& candidate = candidates_[start.candidate];
        const OrderGraph graph = make_order_graph(start.schedule, candidate.costs);
        if (!can_improve(start)) return start;
        const Ticks bound = bound_of(start);
        Draws draws(combine_key(request_.seed, num_runs_++));
        const OrderSearch search{request_.objective, candidate.most_held, bound, moves, temperature(graph)};
        const FoundOrder order = search_order(graph, nodes_of(graph, start.schedule), search, draws);
        moves_ += order.moves;
        Found found{schedule_of(graph, order.lists), start.origin, start.candidate, order.cost};
        if (cheaper(found, best_)) best_ = found;
        improved_.push_back(found);
        return found;
    }

    /// In 1/256 ticks.
    static int64_t temperature(const OrderGraph& graph) {
        const Ticks sum = std::accumulate(graph.cost.begin(), graph.cost.end(), Ticks{0});
        return sum * 256 / static_cast<Ticks>(graph.cost.size()) * kTemperaturePercent / 100;
    }

    /// Overlapping pairs are left as they are.
    void join_halves() {
        for (const std::vector<Action>& list : best_.schedule.actions) {
            if (std::any_of(list.begin(), list.end(), [](const Action& action) { return action.paired; })) return;
        }
        const ScheduleCosts& costs = candidates_[best_.candidate].costs;
        Schedule joined = merge_backwards(best_.schedule, costs, request_.objective);
        best_ = with_cost(std::move(joined), best_);
    }

    SearchResult result() const {
        const Candidate& candidate = candidates_[best_.candidate];
        SearchResult result;
        result.schedule = best_.schedule;
        result.schedule.name = "AUTO";
        result.stages_per_rank = candidate.size.stages_per_rank;
        result.costs = candidate.costs;
        const Simulation simulation = simulate(lower(result.schedule, candidate.edges), candidate.costs);
        result.makespan = simulation.makespan;
        result.span = simulation.span;
        if (best_generated_) {
            result.best_generator = best_generated_->origin;
            result.best_generated = best_generated_->cost;
        }
        result.origin = best_.origin;
        result.lower_bound = bound_;
        result.moves = moves_;
        result.objective = request_.objective;
        check(result.cost() == best_.cost, "the search's times are the simulator's");
        return result;
    }

    const SearchRequest& request_;
    std::vector<Candidate> candidates_;
    std::vector<Found> seeds_;
    std::vector<Found> improved_;  ///< what searched orders came to
    std::optional<Found> best_generated_;
    Found best_;
    Ticks bound_ = 0;
    int64_t moves_ = 0;
    uint64_t num_runs_ = 0;
};

/// What the generators have for the makespan, where it has the same span and ends earlier.
void shorten_makespan(const SearchRequest& request, SearchResult& found) {
    SearchRequest by_makespan = request;
    by_makespan.objective = SearchObjective::Makespan;
    by_makespan.moves = 0;
    SearchResult other = Search(by_makespan).run();
    if (other.span > found.span || other.makespan >= found.makespan) return;
    found.schedule = std::move(other.schedule);
    found.costs = std::move(other.costs);
    found.stages_per_rank = other.stages_per_rank;
    found.makespan = other.makespan;
    found.span = other.span;
    found.origin = std::move(other.origin);
}

}  // namespace

SearchResult search_schedule(const SearchRequest& request) {
    SearchResult found = Search(request).run();
    if (request.objective == SearchObjective::Span) shorten_makespan(request, found);
    return found;
}

}  // namespace vpp
