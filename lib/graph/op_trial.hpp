#pragma once
// Ops of a model's graph, run one by one to see what they give.
#include <ATen/core/ivalue.h>

#include <unordered_map>
#include <vector>

#include "base/error.hpp"
#include "graph/jit_graph.hpp"
#include "graph/slow_trial.hpp"
#include "graph/source.hpp"

namespace vpp {

/// What values of the top level hold.
using TrialValues = std::unordered_map<const torch::jit::Value*, c10::IValue>;

/// Where a model is followed.
struct TrialPlaces {
    at::Device device;     ///< its inputs and weights; on the meta device nothing is computed
    at::Device factory;    ///< what it makes of nothing: masks, positions
    at::Device target;     ///< where it will run: on the meta device, dtypes and layouts are those that it gives
    bool asks_cpu = true;  ///< whether the CPU is asked too about what fails on the meta device
};

/// An op failed on the meta device that fails alike on the CPU: for its shapes, whatever the numbers are.
class FailsAnywhere : public Error {
  public:
    using Error::Error;
};

/// Writes to a schema's inputs are said there; control flow may do anything.
bool may_write_inputs(const torch::jit::Node* node);

/// One walk through a graph's ops, in their order.
class OpTrial {
  public:
    /// `jit` must outlive this.
    OpTrial(const JitGraph& jit, const TrialPlaces& places);

    /// Runs op `index`, and those that cannot be run apart from it; gives their range. What they give is put into
    /// `values`, which hold what they take. What comes out of control flow, or of a list that it changes, is a tensor
    /// of its own there, and needs a gradient if it may.
    /// Throws Error{BadData} naming op and FQN when one fails; FailsAnywhere where it did on the CPU too.
    OpRange run(int index, TrialValues& values);

  private:
    /// Whether something in a list or dict may need a gradient, though now nothing may.
    bool may_need_gradient(const c10::IValue& container) const;
    void note_changed(const JitOp& op, const TrialValues& values);
    void tell_apart(const JitOp& op, TrialValues& values);

    const JitGraph& jit_;
    TrialPlaces places_;
    /// Lists and dicts that are changed, or given by control flow, as the data have it, and what holds or is made of
    /// them: something else is in them in another microbatch.
    std::vector<c10::IValue> others_with_gradient_;
    SlowTrial slow_;
};

}  // namespace vpp
