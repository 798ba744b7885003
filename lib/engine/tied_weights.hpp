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

    /// Copies take their owner's value.  Calls: collective over the pipeline.
    void refresh();

  private:
    /// One copy that travels; several stages of a rank share one.
    struct Copy {
        Channel channel;
        int parameter = 0;
        int from = 0, to = 0;  ///< the transport's ranks
        size_t message_bytes = 0;
    };
    const Weights& weights_;
    Transport& transport_;
    std::vector<Copy> copies_;
};

}  // namespace vpp
