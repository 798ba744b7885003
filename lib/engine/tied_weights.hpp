#pragma once
// The copies of tied parameters: every stage that uses a parameter owned by an earlier stage on another rank holds one.
// They follow the owner after each update, outside the schedule.
#include "comm/transport.hpp"
#include "graph/stages.hpp"
#include "schedule/schedule.hpp"
#include "stage/weights.hpp"

namespace vpp {

class TiedWeights {
  public:
    /// Owns: borrows everything. `pipeline` gives the transport's ranks by PP coordinate.
    TiedWeights(const Split& split, const Schedule& schedule, const Weights& weights, Transport& transport,
                std::vector<int> pipeline);

    /// tied_gradients = "per_step": the owner's `.grad` takes those of the copies, in the order of the stages; theirs
    /// are undefined again. Nothing to do where gradients went with the microbatches.  Calls: collective over the
    /// pipeline.
    void sum_gradients();
    /// Copies take their owner's value.  Calls: collective over the pipeline.
    void refresh();

  private:
    /// One copy that travels; several stages of a rank share one.
    struct Copy {
        int edge = 0;
        int parameter = 0;
        int from = 0, to = 0;  ///< the transport's ranks
        size_t message_bytes = 0;
        bool keeps_gradient = false;  ///< its own sum, to be added once per step
    };
    const Weights& weights_;
    Transport& transport_;
    std::vector<Copy> copies_;
};

}  // namespace vpp
