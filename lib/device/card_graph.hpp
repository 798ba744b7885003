#pragma once
// Ops that a card was given once and is given again in one call (CUDA graphs), at the price of one launch for all of
// them. Twins: card_graph_cuda.cpp with VPP_CUDA=ON, card_graph_none.cpp without.
#include <c10/core/Device.h>

#include <functional>
#include <memory>

namespace vpp {

class CardGraph {
  public:
    virtual ~CardGraph() = default;
    /// Gives the ops to this thread's current stream: they read and write the memory of when they were recorded.
    virtual void replay() = 0;
};

/// Records graphs that share memory: a replay may write wherever others of the recorder had what nobody keeps. So those
/// that go on with what an earlier one left are to be replayed in the order in which they were recorded, with no other
/// one of the recorder between.
class CardRecorder {
  public:
    virtual ~CardRecorder() = default;
    /// Calls `ops`, whose tensors get memory of the recorder. Nothing is computed: what is in them comes with replay().
    /// Requires: no op waits for the card, as none can whose result is yet to come.
    /// Throws:   what `ops` throws, or c10::Error where the card cannot record; the card goes on as before then.
    virtual std::unique_ptr<CardGraph> record(const std::function<void()>& ops) = 0;
};

/// Requires: a card that has been started, of this thread.
std::unique_ptr<CardRecorder> make_card_recorder(at::Device device);

}  // namespace vpp
