#pragma once
// A simulator for order search: holds an order of all ranks with its times, tries a change of one rank's order, and
// works out again only what the change moves. Gives exactly the times of simulate (schedule/simulator.hpp).
#include <cstdint>
#include <vector>

#include "schedule/order_graph.hpp"

namespace vpp {

/// On one rank the actions [begin, middle) and [middle, end) change places.
struct OrderMove {
    int rank = 0;
    int begin = 0;
    int middle = 0;
    int end = 0;
};

/// What became of a move; all but Kept leave the order as it was.
enum class MoveVerdict {
    Kept,
    BreaksOrder,  ///< F, B or I, W of a stage not ascending; or I before its F, W before its I
    OverMemory,   ///< a rank would hold more than the limit
    Deadlocks,    ///< ranks would wait for each other in a circle
    TooSlow,      ///< costs more than allowed
};

/// Invariant: `sequence_` has all nodes, each after all that it waits for, so one pass along it gives all times.
/// A move touches the part of the sequence between the first and the last action that it moves. There what depends on
/// the earlier block goes behind the rest; if the later block depends on the earlier one, the move is a deadlock.
class IncrementalSimulator {
  public:
    /// Requires: lists that check_schedule would prove, ascending per stage, within `most_held` stage activations.
    /// Throws:   Error{Bug} otherwise.
    IncrementalSimulator(const OrderGraph& graph, NodeLists lists, SearchObjective objective, int most_held);

    /// Keeps the move if it is allowed and the new cost is at most `most_cost`.
    /// Requires: 0 <= begin < middle < end <= length of the rank's list.
    MoveVerdict try_move(const OrderMove& move, Ticks most_cost);

    Ticks cost() const { return cost_; }
    const NodeLists& lists() const { return lists_; }
    /// When a node ends.
    Ticks end_of(int node) const { return end_[index(node)]; }

  private:
    static size_t index(int value) { return static_cast<size_t>(value); }
    void lay_out();
    void begin_round();
    bool breaks_order(const OrderMove& move) const;
    bool exceeds_memory(const OrderMove& move) const;
    bool find_new_sequence(const OrderMove& move);
    void rotate(const OrderMove& move);
    bool propagate(const OrderMove& move, Ticks most_cost);
    bool update(int node, Ticks most_cost);
    Ticks wait_for_channel(int node) const;
    int next_of_channel(int node) const;
    void mark_senders(const OrderMove& move);
    void mark_dirty(int node);
    void undo(const OrderMove& move);
    void keep(const OrderMove& move);
    Ticks count_cost() const;
    void count_held(size_t rank, int begin, int end);
    void place(size_t rank, int begin, int end);

    const OrderGraph& graph_;
    SearchObjective objective_;
    int most_held_;
    NodeLists lists_;
    std::vector<int> sequence_;
    std::vector<int> rank_;               ///< by node
    std::vector<int> position_;           ///< by node: in its rank's list
    std::vector<int> place_;              ///< by node: in sequence_
    std::vector<Ticks> end_;              ///< by node
    std::vector<Ticks> waited_;           ///< by node: how long its message waited for its channel
    std::vector<Ticks> work_behind_;      ///< by node: work of its rank behind it
    std::vector<std::vector<int>> held_;  ///< beside lists_: held before the action
    Ticks cost_ = 0;

    // of the move that is being tried
    struct Changed {
        int node;
        Ticks end;
        Ticks waited;
    };
    size_t low_ = 0, high_ = 0;     ///< the touched part of the sequence, both ends included
    std::vector<int> new_part_;     ///< that part afterwards
    std::vector<int> later_;        ///< its nodes that go behind
    std::vector<Changed> changed_;  ///< old times
    std::vector<uint32_t> marked_;  ///< by node: == round_ when it goes behind
    std::vector<uint32_t> dirty_;   ///< by node: == round_ when its time has to be worked out
    int num_dirty_ = 0;
    uint32_t round_ = 0;
};

}  // namespace vpp
