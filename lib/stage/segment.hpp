#pragma once
// One segment of a stage at work: runs the forward and backward of single microbatches and keeps what lies between
// them. A stage without recompute is one segment. It knows tensors and values, not ranks, messages or schedules: the
// engine brings values in and takes values out.
//
// Per microbatch:  set_input / receive_*  ->  forward  ->  take_*  ->  add_gradient  ->  backward  ->  take_gradient
// or in two halves: ... -> add_gradient -> input_gradients -> take_gradient -> weight_gradients -> take_gradient
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <map>
#include <memory>
#include <vector>

#include "graph/graph.hpp"
#include "graph/source.hpp"
#include "graph/stages.hpp"
#include "stage/microbatch.hpp"
#include "stage/pass.hpp"
#include "stage/recordings.hpp"
#include "stage/segment_io.hpp"
#include "stage/split_backward.hpp"
#include "stage/turns.hpp"
#include "stage/weights.hpp"

namespace vpp {

struct SegmentOptions {
    bool training = true;   ///< false: no autograd graph is made, there is no backward
    double loss_scale = 1;  ///< the loss is multiplied by it before backward: 1/M for a mean
    /// A recomputed segment keeps its inputs instead of its graph for the microbatches below.
    int recomputed_microbatches = 0;
    /// On a card: ops are replayed from recordings where they can be (stage/recordings.hpp). Null: op by op.
    std::shared_ptr<SharedRecorder> recorder = nullptr;
};

class Segment {
  public:
    /// Owns: shares the tensors of `weights`; graph and split must outlive the segment.
    Segment(const Graph& graph, const Split& split, int index, Source& source, const Weights& weights,
            const SegmentOptions& options);
    ~Segment();

    const SegmentIo& io() const { return io_; }
    int index() const { return index_; }

    /// To be called before the first action of a step. `loss_factor`, 0-dim, multiplies the loss too: what is known in
    /// the step alone; undefined: nothing does. `may_record`, `by_op`: see Recordings::begin_step.
    void begin_step(const at::Tensor& loss_factor = {}, bool may_record = true, OpByOpBytes by_op = {});

    /// A model input (the graph's number) for a microbatch.
    void set_input(int microbatch, int input, at::Tensor tensor);
    /// A tensor of the graph that another segment made. Throws Error{BadData} when its gradient flag is not the planned
    /// one.
    void receive_tensor(int microbatch, const Edge& edge, at::Tensor tensor, bool requires_grad);
    /// The values of a bundle, tensors inside left open.
    void receive_values(int microbatch, const Edge& edge, std::vector<c10::IValue> values);

    /// Runs the ops. `key` is the microbatch's (base/random.hpp).
    /// Throws Error{BadData} when an op fails or values are not as the probe saw them.
    void forward(int microbatch, uint64_t key);

    /// What an edge carries; its memory is let go when the last edge has taken it. The tensor has the gradient flag
    /// that is planned, and no history that the receiver may use.
    at::Tensor take_tensor(int microbatch, const Edge& edge);
    std::vector<c10::IValue> take_values(int microbatch, const Edge& edge);
    /// The loss of a microbatch, not scaled, where the ops computed it: reading its value waits for them. 0-dim.
    /// Requires: io().makes_loss.
    at::Tensor take_loss(int microbatch);
    /// The graph's outputs of a microbatch, and its tallies behind them. Requires: io().gathered >= 0.
    std::vector<at::Tensor> take_outputs(int microbatch);

    /// The gradient sum of later segments for a tensor or a tied parameter; undefined when they gave none.
    void add_gradient(int microbatch, const Edge& edge, at::Tensor gradient);
    /// B: adds into the parameters' `.grad` in microbatch order and finds the gradients of received tensors.
    void backward(int microbatch);
    /// I: finds the gradients of received tensors alone.
    void input_gradients(int microbatch);
    /// W, after I: adds into `.grad` as backward does.
    void weight_gradients(int microbatch);
    /// The gradient of a received tensor (after B or I) or of the copy of a tied parameter (after B or W); may be
    /// undefined.
    at::Tensor take_gradient(int microbatch, const Edge& edge);

    /// Bytes of gradients that wait for their turn.
    int64_t parked_bytes() const { return turns_.parked_bytes(); }

    /// What its ops are replayed from; null where they are not to be, or never could.
    const Recordings* recordings() const { return recordings_.get(); }

  private:
    Microbatch& state(int microbatch);
    bool is_recomputed(int microbatch) const { return microbatch < options_.recomputed_microbatches; }
    bool is_recorded() const { return recordings_ && recordings_->may_be_made(); }
    std::unique_ptr<Recordings> make_recordings(at::Device device);
    void run_forward(Microbatch& now, bool recompute);
    void run_backward(Microbatch& now) const;
    void run_input_gradients(Microbatch& now) const;
    void run_weight_gradients(Microbatch& now) const;
    void keep_exports(Microbatch& now, Pass& pass, bool without_graph) const;
    Pass take_pass(Microbatch& now) const;
    at::Tensor factor_for(const at::Tensor& loss) const;
    BackwardRoots take_roots(Microbatch& now, const Pass& pass) const;
    BackwardRoots take_tied_roots(Microbatch& now, const Pass& pass) const;
    static void keep_input_gradients(Microbatch& now, const Pass& pass, const std::vector<at::Tensor>& gradients);
    static void keep_tied_gradients(Microbatch& now, const Pass& pass);
    void release_if_done(int microbatch);

    const Graph& graph_;
    const Split& split_;
    int index_;
    SegmentOptions options_;
    SegmentIo io_;
    PassRunner runner_;
    GradientTurns turns_;
    at::Tensor loss_factor_;
    std::map<int, Microbatch> microbatches_;
    std::unique_ptr<Recordings> recordings_;
};

}  // namespace vpp
