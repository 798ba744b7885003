#include "schedule/incremental_simulator.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.hpp"

namespace vpp {

IncrementalSimulator::IncrementalSimulator(const OrderGraph& graph, NodeLists lists, SearchObjective objective,
                                           int most_held)
    : graph_(graph),
      objective_(objective),
      most_held_(most_held),
      lists_(std::move(lists)),
      rank_(graph.cost.size(), 0),
      position_(graph.cost.size(), 0),
      place_(graph.cost.size(), 0),
      end_(graph.cost.size(), 0),
      waited_(graph.cost.size(), 0),
      work_behind_(graph.cost.size(), 0),
      marked_(graph.cost.size(), 0),
      dirty_(graph.cost.size(), 0) {
    for (size_t rank = 0; rank < lists_.size(); ++rank) {
        const int length = static_cast<int>(lists_[rank].size());
        held_.emplace_back(lists_[rank].size(), 0);
        count_held(rank, 0, length);
        place(rank, 0, length);
        Ticks behind = 0;
        for (size_t i = lists_[rank].size(); i-- > 0;) {
            const size_t node = index(lists_[rank][i]);
            rank_[node] = static_cast<int>(rank);
            work_behind_[node] = behind;
            behind += graph_.cost[node];
            check(held_[rank][i] + graph_.held_more[node] <= most_held_, "a seed is within the memory limit");
        }
    }
    lay_out();
    cost_ = count_cost();
}

/// Runs the lists: the first sequence and the times.
void IncrementalSimulator::lay_out() {
    std::vector<size_t> done(lists_.size(), 0);
    std::vector<bool> ran(graph_.cost.size(), false);
    size_t num_nodes = 0;
    for (const std::vector<int>& list : lists_) num_nodes += list.size();
    while (sequence_.size() < num_nodes) {
        const size_t before = sequence_.size();
        for (size_t rank = 0; rank < lists_.size(); ++rank) {
            if (done[rank] == lists_[rank].size()) continue;
            const int node = lists_[rank][done[rank]];
            const int waited = graph_.before[index(node)];
            if (waited != OrderGraph::kNone && !ran[index(waited)]) continue;
            ran[index(node)] = true;
            ++done[rank];
            place_[index(node)] = static_cast<int>(sequence_.size());
            sequence_.push_back(node);
            update(node, std::numeric_limits<Ticks>::max());
        }
        check(sequence_.size() > before, "a seed has no deadlock");
    }
    changed_.clear();
    num_dirty_ = 0;
}

MoveVerdict IncrementalSimulator::try_move(const OrderMove& move, Ticks most_cost) {
    if (breaks_order(move)) return MoveVerdict::BreaksOrder;
    if (exceeds_memory(move)) return MoveVerdict::OverMemory;
    begin_round();
    if (!find_new_sequence(move)) return MoveVerdict::Deadlocks;
    rotate(move);
    if (!propagate(move, most_cost)) {
        undo(move);
        return MoveVerdict::TooSlow;
    }
    const Ticks cost = count_cost();
    if (cost > most_cost) {
        undo(move);
        return MoveVerdict::TooSlow;
    }
    cost_ = cost;
    keep(move);
    return MoveVerdict::Kept;
}

/// Forgets all marks.
void IncrementalSimulator::begin_round() {
    if (++round_ > 0) return;
    std::fill(marked_.begin(), marked_.end(), 0);
    std::fill(dirty_.begin(), dirty_.end(), 0);
    round_ = 1;
}

/// Whether an action of the first block has to stay before one of the second: of one stage, and of one kind or one
/// microbatch. (F(i) and a later I(j) are kept apart by F(j), which stands between them.)
bool IncrementalSimulator::breaks_order(const OrderMove& move) const {
    const std::vector<int>& list = lists_[index(move.rank)];
    for (int x = move.begin; x < move.middle; ++x) {
        const int earlier = list[index(x)];
        const int stage = graph_.stage(earlier);
        for (int y = move.middle; y < move.end; ++y) {
            const int later = list[index(y)];
            if (earlier / 3 == later / 3) return true;
            if (earlier % 3 == later % 3 && stage == graph_.stage(later)) return true;
        }
    }
    return false;
}

bool IncrementalSimulator::exceeds_memory(const OrderMove& move) const {
    const std::vector<int>& list = lists_[index(move.rank)];
    int held = held_[index(move.rank)][index(move.begin)];
    for (int step = 0, count = move.end - move.begin; step < count; ++step) {
        const int from_middle = move.middle + step;
        const int i = from_middle < move.end ? from_middle : from_middle - count;
        held += graph_.held_more[index(list[index(i)])];
        if (held > most_held_) return true;
    }
    return false;
}

/// The touched part of the sequence afterwards; false when the second block waits for the first.
bool IncrementalSimulator::find_new_sequence(const OrderMove& move) {
    const std::vector<int>& list = lists_[index(move.rank)];
    low_ = index(place_[index(list[index(move.begin)])]);
    high_ = index(place_[index(list[index(move.end - 1)])]);
    new_part_.clear();
    later_.clear();
    for (size_t k = low_; k <= high_; ++k) {
        const int node = sequence_[k];
        const int waited = graph_.before[index(node)];
        const bool waits = waited != OrderGraph::kNone && marked_[index(waited)] == round_;
        const int position = position_[index(node)];
        bool goes_behind = waits;
        if (rank_[index(node)] == move.rank) {
            goes_behind = position < move.middle;
            if (!goes_behind && waits) return false;
        } else if (!waits && position > 0) {
            goes_behind = marked_[index(lists_[index(rank_[index(node)])][index(position - 1)])] == round_;
        }
        if (goes_behind) marked_[index(node)] = round_;
        (goes_behind ? later_ : new_part_).push_back(node);
    }
    new_part_.insert(new_part_.end(), later_.begin(), later_.end());
    return true;
}

/// Changes the list, its positions and the work behind each action.
void IncrementalSimulator::rotate(const OrderMove& move) {
    std::vector<int>& list = lists_[index(move.rank)];
    const auto at = [&](int i) { return list.begin() + i; };
    std::rotate(at(move.begin), at(move.middle), at(move.end));
    Ticks behind = 0;
    if (static_cast<size_t>(move.end) < list.size()) {
        const size_t next = index(list[index(move.end)]);
        behind = work_behind_[next] + graph_.cost[next];
    }
    for (int i = move.end; i-- > move.begin;) {
        const size_t node = index(list[index(i)]);
        work_behind_[node] = behind;
        behind += graph_.cost[node];
    }
    place(index(move.rank), move.begin, move.end);
}

/// New times along the new sequence; false as soon as the cost is certain to be too high.
bool IncrementalSimulator::propagate(const OrderMove& move, Ticks most_cost) {
    const std::vector<int>& list = lists_[index(move.rank)];
    changed_.clear();
    num_dirty_ = 0;
    mark_dirty(list[index(move.begin)]);
    mark_dirty(list[index(move.begin + move.end - move.middle)]);
    if (static_cast<size_t>(move.end) < list.size()) mark_dirty(list[index(move.end)]);
    if (graph_.has_channels) mark_senders(move);
    const auto pass = [&](int node) { return dirty_[index(node)] != round_ || update(node, most_cost); };
    for (int node : new_part_) {
        if (!pass(node)) return false;
    }
    for (size_t k = high_ + 1; num_dirty_ > 0; ++k) {
        if (!pass(sequence_[k])) return false;
    }
    return true;
}

/// Works out one time; false when the cost will be more than `most_cost`.
bool IncrementalSimulator::update(int node, Ticks most_cost) {
    --num_dirty_;
    const size_t n = index(node);
    const std::vector<int>& list = lists_[index(rank_[n])];
    const int position = position_[n];
    const int waited = graph_.before[n];
    Ticks start = position == 0 ? 0 : end_[index(list[index(position - 1)])];
    if (waited != OrderGraph::kNone) {
        start = std::max(start, end_[index(waited)] + waited_[index(waited)] + graph_.lag[n]);
    }
    const Changed before{node, end_[n], waited_[n]};
    end_[n] = start + graph_.cost[n];
    if (graph_.has_channels) waited_[n] = wait_for_channel(node);
    const Ticks end = end_[n];
    if (end == before.end && waited_[n] == before.waited) return true;
    changed_.push_back(before);
    const size_t first = index(list.front());
    const Ticks begun = objective_ == SearchObjective::Span ? end_[first] - graph_.cost[first] : 0;
    const Ticks tail = objective_ == SearchObjective::Span ? 0 : graph_.tail[n];
    if (end - begun + std::max(work_behind_[n], tail) > most_cost) return false;
    if (index(position + 1) < list.size()) mark_dirty(list[index(position + 1)]);
    if (graph_.behind[n] != OrderGraph::kNone) mark_dirty(graph_.behind[n]);
    const int next = graph_.has_channels ? next_of_channel(node) : OrderGraph::kNone;
    if (next != OrderGraph::kNone) mark_dirty(next);
    return true;
}

/// From the end of a node until the message before its own has left the channel.
Ticks IncrementalSimulator::wait_for_channel(int node) const {
    const int to = graph_.sends_to[index(node)];
    if (to == OrderGraph::kNone) return 0;
    const std::vector<int>& list = lists_[index(rank_[index(node)])];
    for (int i = position_[index(node)]; i-- > 0;) {
        const size_t earlier = index(list[index(i)]);
        if (graph_.sends_to[earlier] != to) continue;
        const Ticks free = end_[earlier] + waited_[earlier] + graph_.occupied[earlier];
        return std::max<Ticks>(0, free - end_[index(node)]);
    }
    return 0;
}

/// The node with the next message of the same channel, or kNone.
int IncrementalSimulator::next_of_channel(int node) const {
    const int to = graph_.sends_to[index(node)];
    if (to == OrderGraph::kNone) return OrderGraph::kNone;
    const std::vector<int>& list = lists_[index(rank_[index(node)])];
    for (size_t i = index(position_[index(node)]) + 1; i < list.size(); ++i) {
        if (graph_.sends_to[index(list[i])] == to) return list[i];
    }
    return OrderGraph::kNone;
}

/// After a move: whose message may have another one before it in its channel.
void IncrementalSimulator::mark_senders(const OrderMove& move) {
    const std::vector<int>& list = lists_[index(move.rank)];
    for (int i = move.begin; i < move.end; ++i) {
        const int node = list[index(i)];
        if (graph_.sends_to[index(node)] == OrderGraph::kNone) continue;
        mark_dirty(node);
        const int next = next_of_channel(node);
        if (next != OrderGraph::kNone) mark_dirty(next);
    }
}

void IncrementalSimulator::mark_dirty(int node) {
    if (dirty_[index(node)] == round_) return;
    dirty_[index(node)] = round_;
    ++num_dirty_;
}

void IncrementalSimulator::undo(const OrderMove& move) {
    for (const Changed& changed : changed_) {
        end_[index(changed.node)] = changed.end;
        waited_[index(changed.node)] = changed.waited;
    }
    rotate({move.rank, move.begin, move.begin + move.end - move.middle, move.end});
}

void IncrementalSimulator::keep(const OrderMove& move) {
    for (size_t k = low_; k <= high_; ++k) {
        const int node = new_part_[k - low_];
        sequence_[k] = node;
        place_[index(node)] = static_cast<int>(k);
    }
    count_held(index(move.rank), move.begin, move.end);
}

Ticks IncrementalSimulator::count_cost() const {
    Ticks cost = 0;
    for (const std::vector<int>& list : lists_) {
        if (list.empty()) continue;
        const size_t first = index(list.front());
        const Ticks begun = objective_ == SearchObjective::Span ? end_[first] - graph_.cost[first] : 0;
        cost = std::max(cost, end_[index(list.back())] - begun);
    }
    return cost;
}

/// held_ from `begin` on, up to `end`.
void IncrementalSimulator::count_held(size_t rank, int begin, int end) {
    for (int i = std::max(begin, 1); i < end; ++i) {
        const size_t previous = index(i - 1);
        held_[rank][index(i)] = held_[rank][previous] + graph_.held_more[index(lists_[rank][previous])];
    }
}

void IncrementalSimulator::place(size_t rank, int begin, int end) {
    for (int i = begin; i < end; ++i) position_[index(lists_[rank][index(i)])] = i;
}

}  // namespace vpp
