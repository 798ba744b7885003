#include "schedule/dualpipe_v.hpp"

#include <deque>
#include <string>

#include "base/error.hpp"
#include "base/units.hpp"
#include "schedule/v_shape.hpp"

namespace vpp {

namespace {

/// One rank's list with the queue of its pending W.
class DualPipeList {
  public:
    DualPipeList(const ScheduleSize& size, int rank)
        : num_ranks_(size.num_ranks), num_microbatches_(size.num_microbatches), rank_(rank), writer_(size, rank) {}

    std::vector<Action> make() {
        const int P = num_ranks_, r = rank_;
        for (int i = 0; i < 2 * (P - 1 - r); ++i) forward(Leg::Down);
        for (int i = 0; i < r + 1; ++i) {
            forward(Leg::Down);
            forward(Leg::Up);
        }
        for (int i = 0; i < P - 1 - r; ++i) {
            input_gradient(Leg::Up);
            weight_gradient();
            forward(Leg::Up);
        }
        for (int i = 0; i < num_microbatches_ - 2 * P + r + 1; ++i) {
            const bool apart = i == 0 && r == P - 1;
            apart ? forward(Leg::Down) : writer_.add_paired_forward(Leg::Down);
            backward(Leg::Up);
            pair(Leg::Up, Leg::Down);
        }
        for (int i = 0; i < P - 1 - r; ++i) {
            backward(Leg::Up);
            pair(Leg::Up, Leg::Down);
        }
        turn_to_split_backwards();
        for (int i = 0; i < P - 1 - r; ++i) {
            weight_gradient();
            input_gradient(Leg::Down);
        }
        for (int i = 0; i < r + 1; ++i) weight_gradient();
        check(pending_.empty(), "DualPipeV computes every weight gradient");
        return writer_.take();
    }

  private:
    void forward(Leg leg) { writer_.add(ActionKind::F, leg); }
    void backward(Leg leg) { writer_.add(ActionKind::B, leg); }
    void pair(Leg forward_leg, Leg backward_leg) {
        writer_.add_paired_forward(forward_leg);
        backward(backward_leg);
    }
    void input_gradient(Leg leg) {
        writer_.add(ActionKind::I, leg);
        pending_.push_back(leg);
    }
    void weight_gradient() {
        writer_.add(ActionKind::W, pending_.front());
        pending_.pop_front();
    }

    void turn_to_split_backwards() {
        const int turn = (rank_ + 1) / 2;
        for (int i = 0; i < rank_ + 1; ++i) {
            const bool splits_up = i > turn || (i == turn && rank_ % 2 == 1);
            splits_up ? input_gradient(Leg::Up) : backward(Leg::Up);
            i >= turn ? input_gradient(Leg::Down) : backward(Leg::Down);
        }
    }

    int num_ranks_, num_microbatches_, rank_;
    VListWriter writer_;
    std::deque<Leg> pending_;
};

}  // namespace

Schedule make_dualpipe_v(const ScheduleSize& size) {
    check_two_stages_per_rank(size, "DUALPIPE_V");
    const int fewest = 2 * size.num_ranks;
    if (size.num_microbatches < fewest) {
        throw Error(ErrorKind::Plan, "DUALPIPE_V needs two microbatches for each rank (got num_microbatches = " +
                                         std::to_string(size.num_microbatches) + " for " +
                                         counted_text(size.num_ranks, "rank") + ", expected at least " +
                                         std::to_string(fewest) + "); try num_microbatches = " +
                                         std::to_string(fewest) + " or schedule_type = \"ZERO_BUBBLE_V\"");
    }
    Schedule schedule = make_empty_v(size, "DUALPIPE_V");
    for (int rank = 0; rank < size.num_ranks; ++rank) schedule.actions.push_back(DualPipeList(size, rank).make());
    return schedule;
}

}  // namespace vpp
