#pragma once
// Where the model's outputs and tallies leave a pipeline: the stage with the last op of the graph, which gathers them,
// gives one more value than the stage asked for. Stages and executor know nothing of it.
#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

#include "graph/graph.hpp"
#include "graph/source.hpp"

namespace vpp {

/// Counts the runs of the last stage: its forwards come in microbatch order (schedule/checker.hpp).
class OutputTap {
  public:
    using Take = std::function<void(int microbatch, const std::vector<at::Tensor>& outputs)>;

    explicit OutputTap(const Graph& graph);
    /// To be called before the first action of a group of microbatches.
    void begin(Take take);

  private:
    friend class TappedSource;
    friend class TappedExecutable;
    void pass(const c10::IValue& gathered);

    int gathered_ = -1;  ///< the value that holds all of them; -1 without any
    int last_op_ = 0;
    size_t num_outputs_ = 0;
    int microbatch_ = 0;
    Take take_;
};

/// A Source whose executable of the last op passes the outputs to the tap.
class TappedSource : public Source {
  public:
    /// Owns: borrows both; the tap must outlive the executables.
    TappedSource(Source& inner, OutputTap& tap) : inner_(inner), tap_(tap) { place_on(inner.device()); }
    std::unique_ptr<Executable> executable(OpRange range, const std::vector<int>& live_ins,
                                           const std::vector<int>& parameters,
                                           const std::vector<int>& live_outs) override;
    at::Tensor weight(int parameter) override { return inner_.weight(parameter); }

  private:
    Source& inner_;
    OutputTap& tap_;
};

}  // namespace vpp
