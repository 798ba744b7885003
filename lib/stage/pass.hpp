#pragma once
// One run of a segment's ops for one microbatch: what goes in, what comes out, and the autograd graph between them. A
// recomputed segment runs its pass twice, with the same bits.
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <torch/csrc/autograd/edge.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "graph/graph.hpp"
#include "graph/source.hpp"
#include "graph/stages.hpp"
#include "graph/weight_casts.hpp"
#include "stage/segment_io.hpp"
#include "stage/weights.hpp"

namespace vpp {

class InputNode;

/// What the ops take from outside, parameters left out.
struct PassInputs {
    std::map<int, at::Tensor> tensors;    ///< model inputs and received ones, by the graph's number
    std::map<int, c10::IValue> values;    ///< containers and plain values; tensors inside are taken from `tensors`
    std::map<int, at::Tensor> old_state;  ///< parameter -> what to write instead of the buffer
    std::set<int> without_gradient;       ///< received ones that may carry one, but not in this microbatch
    uint64_t key = 0;                     ///< the microbatch's (base/random.hpp)
};

struct Pass {
    Pass();

    std::map<int, at::Tensor> tensors;  ///< from outside or made, by the graph's number
    std::map<int, c10::IValue> values;  ///< received or made
    at::Tensor loss;                    ///< not scaled; undefined unless made here
    std::vector<at::Tensor> outputs;    ///< of the graph, and its tallies behind them, where they are gathered here

    // The autograd graph; in evaluation empty but for what forward itself takes gradients of.
    std::shared_ptr<InputNode> inputs;
    std::shared_ptr<InputNode> copies;                    ///< of tied parameters
    std::map<int, uint32_t> input_slots;                  ///< received tensor -> slot of `inputs`
    std::set<int> without_gradient;                       ///< received ones that have no slot in this microbatch
    std::map<int, uint32_t> copy_slots;                   ///< parameter -> slot of `copies`
    std::map<int, torch::autograd::Edge> gradient_edges;  ///< tensor -> where its arriving gradient enters, if it does
    std::map<int, torch::autograd::Edge> tied_edges;      ///< parameter -> where its arriving gradient enters
};

class PassRunner {
  public:
    /// Owns: shares the tensors of `weights`; the graph must outlive it. `training`: make autograd graphs.
    PassRunner(const Graph& graph, const Split& split, int segment, const SegmentIo& io, Source& source,
               const Weights& weights, bool training);

    /// To be called before the first run of a step: weights that ops take cast are cast for all of them.
    void begin_step() { casts_.refresh(); }

    /// Throws Error{BadData} when an op fails or values are not as the probe saw them.
    Pass run(PassInputs inputs) const;

    /// What run will need to give the same bits again: what ops write in place is copied.
    PassInputs save(const PassInputs& inputs) const;

    /// The trained parameters of which this segment writes `.grad`.
    std::vector<at::Tensor> trained() const;
    /// All parameters and buffers that its ops use.
    const std::vector<at::Tensor>& parameters() const { return parameters_; }

    /// Whether ops write a tensor that came from outside.
    bool writes(int tensor) const;
    /// Whether ops write buffers that others of them read.
    bool reads_what_it_writes() const;

  private:
    /// Whether each microbatch writes into a copy, which then becomes the parameter.
    bool has_own_memory(size_t index, const PassInputs& inputs) const;
    at::Tensor bind_parameter(Pass& pass, size_t index, const PassInputs& inputs) const;
    std::vector<c10::IValue> bind_arguments(Pass& pass, const PassInputs& inputs) const;
    void share_casts();
    void attach_received(Pass& pass) const;
    void keep_written(const Pass& pass, const PassInputs& inputs) const;
    std::vector<at::Tensor> take_outputs(std::vector<c10::IValue>& results) const;
    void keep_results(Pass& pass, std::vector<c10::IValue> results) const;
    void keep_edges(Pass& pass) const;

    const Graph& graph_;
    const SegmentIo& io_;
    OpRange ops_;
    bool training_;
    std::vector<at::Tensor> parameters_;      ///< in the order of io_.parameters
    std::vector<bool> read_beside_writes_;    ///< of each
    std::map<int, int> tensor_of_parameter_;  ///< the graph's numbers
    std::unique_ptr<Executable> executable_;
    WeightCasts casts_;
};

/// Runs LibTorch on the model's behalf: what it throws is the model's fault (Error{BadData}) or a lack of memory.
void run_model(const std::function<void()>& call);

}  // namespace vpp
