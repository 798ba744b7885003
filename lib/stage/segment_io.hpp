#pragma once
// What a segment takes and gives, worked out once from graph and split: values to bind, tensors to export, and where
// gradients come and go.
#include <vector>

#include "graph/graph.hpp"
#include "graph/stages.hpp"

namespace vpp {

struct SegmentIo {
    std::vector<int> live_ins;          ///< values from outside that its ops use, parameters left out
    std::vector<int> parameters;        ///< parameters and buffers that its ops use, also through values from outside
    std::vector<int> live_outs;         ///< values made here that others need, and the loss if it is made here
    std::vector<int> received;          ///< tensors that come from other segments
    std::vector<int> gradient_arrives;  ///< tensors whose gradient comes from a later segment
    std::vector<int> tied_copies;       ///< trained parameters of an earlier segment: their gradient leaves
    std::vector<int> tied_arrives;      ///< parameters whose gradient comes from a later segment
    std::vector<int> exports;           ///< edges whose value leaves this segment
    bool makes_loss = false;
    int gathered = -1;  ///< the value that holds outputs and tallies of the graph, if it has any and it is made here
};

SegmentIo find_segment_io(const Graph& graph, const Split& split, int segment);

}  // namespace vpp
