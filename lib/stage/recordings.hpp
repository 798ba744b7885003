#pragma once
// The recordings of a segment (stage/recording.hpp): a card takes microseconds for most ops, and the host longer to
// give each to it. Steps run op by op until it is known what each microbatch is like; then one recording is made for
// each that is under way at once, and replayed. Recomputed microbatches keep their inputs alone: one recording serves
// all of them, or between the two halves of a backward one. Those that are evaluated keep nothing. A microbatch of
// another form runs op by op.
#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "stage/gradient_sums.hpp"
#include "stage/microbatch.hpp"
#include "stage/microbatch_form.hpp"
#include "stage/recording.hpp"
#include "stage/shared_recorder.hpp"

namespace vpp {

/// What a rank took at most in a step op by op.
struct OpByOpBytes {
    int64_t microbatch = 0;  ///< one of the segment's
    int64_t beside = 0;      ///< all that is not recorded, and not of the segment's stage
};

class Recordings {
  public:
    /// `trained`: the parameters whose `.grad` is written; none in evaluation. `weights`: all that the ops read or
    /// write beside inputs. `shared`: of all recordings of the rank.
    Recordings(at::Device device, std::shared_ptr<SharedRecorder> shared, std::vector<at::Tensor> trained,
               std::vector<at::Tensor> weights, SegmentOps ops);

    /// Steps op by op: in the first one libraries start, in the second one memory is measured.
    static constexpr int kStepsByOp = 2;

    /// To be called before the first action of a step; records when it is time, unless it may not yet: memory may be
    /// free now that others will need. `by_op`: there must be room for that. `loss_factor` is what the ops are to use
    /// in its place. Throws: Error{OutOfMemory} where a library did without memory while it was recorded: it may do so
    /// from then on.
    at::Tensor begin_step(const at::Tensor& loss_factor, bool may_record = true, OpByOpBytes by_op = {});
    /// Whether the next begin_step() tries to record if it may.
    bool will_record() const { return !are_made() && reason_.empty() && num_steps_ >= kStepsByOp; }

    // What a microbatch does, in the order of its actions; backward and weight_gradients add into `.grad`.
    void forward(int microbatch, Microbatch& now, bool is_recomputed);
    void backward(int microbatch, Microbatch& now);
    void input_gradients(int microbatch, Microbatch& now);
    void weight_gradients(int microbatch, Microbatch& now);
    /// Instead: forward of one that no backward follows.
    void evaluate(Microbatch& now);

    /// Whether it is of use to have microbatches go this way; the same all through a step.
    bool may_be_made() const { return reason_.empty(); }
    /// Whether steps are replayed now.
    bool are_made() const { return !recordings_.empty(); }
    /// Why none could be made; empty unless it was tried.
    const std::string& reason() const { return reason_; }
    /// The memory of all of them, whether a microbatch is under way or not, without what is shared. LibTorch counts a
    /// part of it as alive.
    int64_t bytes() const;

  private:
    struct Noted {
        MicrobatchForm form;
        Recording* recording = nullptr;  ///< null: runs op by op
        bool is_made_again = false;
    };

    void record(OpByOpBytes by_op);
    void record_all(OpByOpBytes by_op);
    void check_nothing_is_under_way() const;
    void check_room(int64_t needed_bytes) const;
    void forget();
    std::vector<const void*> addresses() const;
    std::vector<MicrobatchForm> forms_to_record() const;
    Recording* find(int microbatch, const MicrobatchForm& inputs, bool must_be_free) const;
    void hold(int microbatch, const Noted& noted);
    void keep_from_writers(PassInputs& inputs) const;
    Noted& note_arrived(int microbatch, const Microbatch& now);
    void make_pass_again(Noted& noted, Microbatch& now) const;
    void end(int microbatch, Microbatch& now);

    at::Device device_;
    std::shared_ptr<SharedRecorder> shared_;
    std::vector<at::Tensor> trained_, weights_;
    SegmentOps ops_;
    int num_steps_ = 0;                        ///< op by op
    std::vector<MicrobatchForm> evaluated_;    ///< op by op, each once
    std::map<int, Noted> noted_;               ///< by microbatch, of the step
    std::vector<std::pair<int, bool>> turns_;  ///< of the step: when one begins (true) and ends to be held
    std::map<int, MicrobatchForm> expected_;   ///< by microbatch, when they were recorded
    std::unique_ptr<GradientSums> sums_;
    std::vector<std::unique_ptr<Recording>> recordings_;
    std::vector<const void*> addresses_;  ///< of the weights when they were recorded
    at::Tensor loss_factor_;              ///< where recorded ops read it
    std::string reason_;
};

}  // namespace vpp
