#pragma once
// Runs one rank's actions of a phase, in order. It knows actions only: no schedule's name and no rank's role stands
// here. Segments compute, the transport moves, the executor joins the two and hands over what stays on the rank.
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "comm/link_transport.hpp"
#include "comm/transport.hpp"
#include "device/device_marks.hpp"
#include "device/memory_meter.hpp"
#include "engine/gradient_reduction.hpp"
#include "program/program.hpp"
#include "schedule/held_sends.hpp"
#include "schedule/measured_times.hpp"
#include "stage/message.hpp"
#include "stage/segment.hpp"

namespace vpp {

/// What the executor asks for while it runs, the data of a microbatch and its key, and who takes the outputs of the
/// graph, with its tallies behind them, where it has any. `place` says which data a microbatch is, for errors.
struct MicrobatchEnds {
    std::function<at::Tensor(int microbatch, int input)> input;
    std::function<uint64_t(int microbatch)> key;
    std::function<void(int microbatch, std::vector<at::Tensor> outputs)> take_outputs = {};
    std::function<std::string(int microbatch)> place = {};
};

/// Receives that stand ready ahead of the action that waits for them. Each holds a buffer, so few; two directions of
/// two neighbours can be under way at once.
inline constexpr int kReceivesAhead = 4;

/// Of messages, in the memory where a rank computes. A card's is taken when a receive's turn comes.
constexpr MessageBuffers message_buffers(bool on_card) {
    return {on_card ? 0 : kReceivesAhead, on_card ? kSendsBehind : 0};
}

/// What this process's tensors and messages took while an action ran (device/memory_meter.hpp).
struct ActionMemory {
    int64_t before = 0;
    int64_t peak = 0;
    int64_t after = 0;
};

/// Who looks on while actions run: at what leaves a segment, and at the end of each action.
struct ExecutorWatch {
    std::function<void(const Edge& edge, int microbatch, Direction direction, const at::Tensor& tensor)> tensor;
    std::function<void(const Action& action)> action;
};

class Executor {
  public:
    /// Owns: nothing of phase and transport, which must outlive it.
    /// `pipeline` gives the transport's ranks by PP coordinate; `pp_rank` is this one's.
    Executor(const Phase& phase, Source& source, const Weights& weights, const SegmentOptions& options,
             Transport& transport, std::vector<int> pipeline, int pp_rank, bool overlap);

    /// Runs all actions of one step.  Calls: collective over the pipeline.
    /// `loss_factor`: see Segment::begin_step.
    /// Throws what a stage or the transport throws; the message names stage, action and microbatch.
    void run(const MicrobatchEnds& ends, const at::Tensor& loss_factor = {});

    /// Whether runs from now on may record (Recordings::begin_step); at first they may.
    void set_may_record(bool may_record) { may_record_ = may_record; }

    /// Whether the next run tries to record ops if it may.
    bool will_record() const;
    /// The next run is as the first: it has shapes that no run has had, for which kernels may be loaded.
    void expect_new_kernels() { has_run_ = false; }

    /// What sums the gradients of replicas; none where there is one replica. Borrowed.
    void set_reduction(GradientReduction* reduction) { reduction_ = reduction; }

    /// From now on the rank's card is asked when it computes: note_device_times(). Nothing on the CPU.
    void mark_device();
    /// Behind a run, for which it waits on the card: its spans, and the time waited, are the card's then.
    void note_device_times();
    /// Whether spans say from now on when links moved what actions gave them. A run waits for it at its end then.
    void time_messages(bool is_timed);

    /// For all runs from now on; empty functions are not called.
    void set_watch(ExecutorWatch watch) { watch_ = std::move(watch); }

    at::Device device() const { return device_; }
    /// Losses of the last run by microbatch; empty unless this rank makes the loss.
    const std::vector<double>& losses() const { return losses_; }
    bool makes_loss() const { return phase_.makes_losses(pp_rank_); }
    /// One of them while actions run, behind its F; waits for it.
    double loss_of(int microbatch) const;
    /// What there was before the first action of the last run.
    int64_t bytes_before() const { return bytes_before_; }
    /// Beside the rank's actions, of the last run in which each ran op by op: one that is replayed takes only what it
    /// gives on.
    const std::vector<ActionMemory>& memory_by_op() const { return memory_by_op_; }
    const std::vector<ActionSpan>& spans() const { return spans_; }
    /// From the begin of the last run's first action to the end of its last one.
    double actions_seconds() const;
    /// Spent waiting for messages in all runs since the last call, and before them since the transport was asked. Of a
    /// card: without work between actions.
    double take_wait_seconds() { return std::exchange(wait_seconds_, 0); }
    /// The most that the last run took at once beside what was there before it: activations, gradients, messages.
    int64_t activation_bytes() const;
    /// Of this rank's segments those whose ops are replayed (stage/recordings.hpp) and, where that is asked for, those
    /// that run op by op all the same.
    int64_t recorded_segments() const;
    int64_t by_op_segments() const;
    /// Which could not be recorded when it was tried, and why; empty: none.
    std::string recording_problems() const;
    /// Most bytes of gradients that waited for their turn in the last run.
    int64_t peak_parked_bytes() const { return peak_parked_bytes_; }

  private:
    void begin_segments(const at::Tensor& loss_factor);
    void run_measured(const Action& action, const MicrobatchEnds& ends);
    void note_memory_by_op();
    std::map<int, int64_t> bytes_by_stage() const;
    int64_t bytes_beside(int stage) const;
    std::set<int> recorded_stages() const;
    void note_message_times();
    void run_action(const Action& action, const MicrobatchEnds& ends);
    int64_t num_failed_requests() const;
    void refuse_other_algorithms() const;
    std::string memory_text() const;
    int64_t recorded_bytes() const;
    void note_time(int64_t begin);
    void read_losses();
    void run_forward(const Action& action, const MicrobatchEnds& ends);
    void run_backward(const Action& action);
    void forward(Segment& segment, int microbatch, const MicrobatchEnds& ends);
    void backward(Segment& segment, ActionKind kind, int microbatch);
    Contents contents_of(const Action& action, const at::Tensor& tensor) const;
    void send(const Action& action);
    void receive(const Action& action);
    at::Tensor take_tensor(const Edge& edge, int microbatch);
    at::Tensor take_gradient(const Edge& edge, int microbatch);
    void hand_over(const Edge& edge, int microbatch);
    void hand_back(const Edge& edge, int microbatch);
    void post_receives(size_t position);
    void post(const Action& action);

    Segment& segment(int index);
    bool is_here(int segment_index) const;
    const Edge& edge_of(const Action& action) const;
    size_t most_bytes(const Edge& edge) const;

    const Phase& phase_;
    Transport& transport_;
    std::vector<int> pipeline_;
    int pp_rank_;
    bool overlap_;
    std::shared_ptr<const SharedRecorder> recorder_;  ///< null: ops run one by one
    std::vector<std::unique_ptr<Segment>> segments_;  ///< null for those of other ranks
    size_t posted_ = 0;                               ///< actions before it that receive are posted
    int outstanding_ = 0;                             ///< posted and not yet received
    at::Device device_;
    MemoryMeter meter_;
    std::vector<at::Tensor> made_losses_;  ///< by microbatch, on the device
    std::vector<double> losses_;
    std::vector<ActionMemory> memory_;  ///< of the last run
    std::vector<ActionMemory> memory_by_op_;
    std::vector<ActionSpan> spans_;
    double wait_seconds_ = 0;
    int64_t load_nanoseconds_ = 0;  ///< of the action under way
    int64_t bytes_before_ = 0;
    int64_t failed_before_ = 0;  ///< requests for memory
    bool has_run_ = false;
    int64_t peak_parked_bytes_ = 0;
    ExecutorWatch watch_;
    bool may_record_ = true;
    std::vector<at::Tensor> uploaded_;  ///< by a run through the host: later ones find memory for as much
    bool are_messages_timed_ = false;
    std::optional<DeviceMarks> marks_;  ///< of the run: the begin and end of every computing action
    GradientReduction* reduction_ = nullptr;
};

/// "stage 2, F of microbatch 3"
std::string describe(const Action& action);

}  // namespace vpp
