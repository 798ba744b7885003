#pragma once
// The ops of a segment for one microbatch as graphs of the card (device/card_graph.hpp), with the memory that they read
// and write. What comes is copied there before a replay, and what it gives from there behind it.
#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "device/card_graph.hpp"
#include "stage/gradient_sums.hpp"
#include "stage/microbatch.hpp"
#include "stage/microbatch_form.hpp"
#include "stage/recorded_randomness.hpp"
#include "stage/shared_recorder.hpp"

namespace vpp {

/// What a segment does, op by op.
struct SegmentOps {
    std::function<void(Microbatch&, bool is_recomputed)> forward;
    std::function<void(Microbatch&)> backward, input_gradients, weight_gradients;
    std::function<PassInputs(const PassInputs&)> save;  ///< PassRunner::save
    std::function<bool(int tensor)> writes;             ///< PassRunner::writes
};

/// Of one microbatch under way; for all of those that are evaluated or recomputed, which behind forward have nothing or
/// their inputs alone.
class Recording {
  public:
    /// Records; nothing is computed. Borrows `shared` and `sums`, which must outlive it.
    /// Throws NotRecordable, and what the ops throw.
    Recording(MicrobatchForm form, at::Device device, SharedRecorder& shared, GradientSums& sums,
              const SegmentOps& ops);

    const MicrobatchForm& form() const { return form_; }
    /// Of memory that is there whether a microbatch is under way or not, without what is shared.
    int64_t bytes() const { return bytes_; }
    const PassInputs& inputs() const { return inputs_; }
    const std::map<int, at::Tensor>& arrived() const { return arrived_; }

    bool is_free = true;  ///< it has nothing that a microbatch will need

    // Replays; backward and weight_gradients add into `.grad`.
    void forward(Microbatch& now);
    void backward(Microbatch& now);
    void input_gradients(Microbatch& now);
    void weight_gradients(Microbatch& now);

  private:
    void keep(const std::function<void()>& record);
    void share(const std::function<void()>& record);
    PassInputs input_places() const;
    void record_forward(Microbatch& now, const SegmentOps& ops);
    void record_backward(Microbatch& now, const SegmentOps& ops);
    void record_halves(Microbatch& now, const SegmentOps& ops);
    void record_again(const std::function<void()>& ops);
    std::unique_ptr<CardGraph> record_sums(const std::function<void()>& ops);
    void arrive(Microbatch& now, const SegmentOps& ops);
    void arrive_tied(Microbatch& now);
    void lend_all();
    void take_inputs(PassInputs& places, const Microbatch& now);
    void take_arrived(Microbatch& now);
    void take_tied(Microbatch& now);

    MicrobatchForm form_;
    at::Device device_;
    SharedRecorder& shared_;
    std::shared_ptr<CardRecorder> forward_recorder_, backward_recorder_;
    PassInputs inputs_, inputs_again_;
    std::map<int, at::Tensor> arrived_, tied_arrived_;
    Microbatch made_;  ///< what the graphs leave
    GradientSums& sums_;
    std::vector<size_t> given_;  ///< which parameters get a gradient
    RecordedRandomness randomness_;
    std::unique_ptr<CardGraph> forward_, backward_, input_gradients_, weight_gradients_;
    int64_t bytes_ = 0;
};

}  // namespace vpp
