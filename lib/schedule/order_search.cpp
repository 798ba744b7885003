#include "schedule/order_search.hpp"

#include <algorithm>

namespace vpp {

namespace {

constexpr int64_t kMovesPerTemperature = 64;

/// value x numerator / denominator, without overflow where the result has none.
int64_t scaled(int64_t value, int64_t numerator, int64_t denominator) {
    return value / denominator * numerator + value % denominator * numerator / denominator;
}

/// The temperature with `left` of `total` moves to go.
int64_t temperature_at(int64_t start, int64_t left, int64_t total) {
    constexpr int64_t kSteps = 1024;
    const int64_t share = scaled(kSteps, left, total);
    return scaled(scaled(start, share, kSteps), share, kSteps);
}

bool can_move(const NodeLists& lists) {
    return std::any_of(lists.begin(), lists.end(), [](const std::vector<int>& list) { return list.size() >= 2; });
}

}  // namespace

FoundOrder search_order(const OrderGraph& graph, const NodeLists& lists, const OrderSearch& search, Draws& draws) {
    IncrementalSimulator simulator(graph, lists, search.objective, search.most_held);
    FoundOrder best{lists, simulator.cost(), 0};
    if (!can_move(lists)) return best;
    int64_t temperature = 0;
    for (int64_t move = 0; move < search.moves && best.cost > search.bound; ++move) {
        if (move % kMovesPerTemperature == 0) {
            temperature = temperature_at(search.temperature, search.moves - move, search.moves);
        }
        const Ticks slack = scaled(temperature, draws.exponential(), 256 * 256);
        const OrderMove proposed = propose_move(simulator.lists(), draws);
        const MoveVerdict verdict = simulator.try_move(proposed, simulator.cost() + slack);
        best.moves = move + 1;
        if (verdict == MoveVerdict::Kept && simulator.cost() < best.cost) {
            best.cost = simulator.cost();
            best.lists = simulator.lists();
        }
    }
    return best;
}

}  // namespace vpp
