#pragma once
// Stages and edges of a cut graph: who owns which ops, parameters and buffers, and which values go from which stage to
// which. Pure values; nothing here knows ranks.
//
// A tensor that is written in place goes on from the stage that wrote it last. Its gradient goes from the last stage
// that uses it back through the earlier ones to the producer, each adding its own (DESIGN section 4). So does the
// gradient of a tied parameter: the first stage that uses it owns it, later ones hold a copy.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.hpp"
#include "graph/source.hpp"
#include "schedule/schedule.hpp"

namespace vpp {

/// A stage of the model. Parameters and values are indices of the Graph.
struct StageSpec {
    OpRange ops;
    std::vector<int> parameters;  ///< owned: parameters and buffers whose first use is here; unused ones: stage 0
    std::vector<int> borrowed;   ///< used here, owned by an earlier stage: tied and frozen parameters, constant buffers
    std::vector<int> inputs;     ///< model inputs (data fields) that ops of this stage use
    double flops = 0;            ///< forward, one microbatch
    int64_t num_parameters = 0;  ///< trainable and frozen, not buffers
    int64_t parameter_bytes = 0;
    int64_t buffer_bytes = 0;
    int64_t activation_bytes = 0;  ///< kept of one microbatch until its backward, at most
};

/// A part of a stage whose ops run together, with an autograd graph of its own. A stage without recompute is one
/// segment; one that is recomputed keeps its inputs and makes its graph in backward.
struct SegmentSpec {
    OpRange ops;
    int stage = 0;
    bool recompute = false;
    std::vector<int> inputs;       ///< model inputs that its ops use
    int64_t cast_bytes = 0;        ///< copies of weights in half precision, for all microbatches; recomputed: none
    int64_t kept_bytes = 0;        ///< what its ops keep of one microbatch
    int64_t passing_bytes = 0;     ///< beside that for a moment of its forward: values that are still to be used
    int64_t activation_bytes = 0;  ///< that, and what comes to its stage by it
    int64_t input_bytes = 0;       ///< of the tensors that come from other segments, and of model inputs
    int64_t waiting_bytes = 0;     ///< from I to W: what W reads, and the gradients that it starts from
    int64_t working_bytes = 0;     ///< beside that for a moment of its backward: the gradients around its largest op
};

/// What goes from one segment to a later one of the same stage or another: one tensor, or all values of that pair of
/// stages that are not tensors, or for a tied parameter only the gradient, back.
struct Edge {
    /// The ends as segments.
    struct Ends {
        int producer = 0;
        int consumer = 0;
        int gradient_to = 0;
    };
    int id = 0;
    std::string name;
    int tensor = -1;          ///< -1: a bundle of values, or a tied parameter
    std::vector<int> values;  ///< the bundle
    int parameter = -1;       ///< the tied parameter; producer owns it, consumer has a copy
    int producer = 0;         ///< stage
    int consumer = 0;         ///< stage
    bool has_gradient = false;
    int gradient_to = 0;  ///< stage: the last earlier one that uses the tensor, else the producer
    Ends segments;
    int64_t bytes = 0;          ///< of the tensor; 0 for a bundle
    int64_t message_bytes = 0;  ///< of the message (GraphTensor::message_bytes)

    bool is_tied() const { return parameter >= 0; }
    bool is_bundle() const { return tensor < 0 && !is_tied(); }
};

struct Split {
    std::vector<int> cuts;  ///< first op of stages 1, 2, ...
    std::vector<StageSpec> stages;
    std::vector<SegmentSpec> segments;  ///< ascending; those of a stage follow each other
    std::vector<Edge> edges;            ///< by id

    int num_stages() const { return static_cast<int>(stages.size()); }
    int stage_of_op(int op) const;
    int segment_of_op(int op) const;
    /// The segments [first, second) of a stage.
    std::pair<int, int> segments_of(int stage) const;
    int loss_stage = 0;  ///< makes the loss
};

/// `recomputed`: ranges of ops that are segments of their own, ascending, each inside one stage.
/// Requires: cuts and the borders of ranges are legal; cuts ascend. Asserts the exact cover: every op, parameter and
/// buffer in one stage, every op in one segment.
Split make_stages(const Graph& graph, const std::vector<int>& cuts, const std::vector<OpRange>& recomputed = {});

/// tied_gradients = "per_step": gradients of tied parameters do not travel with the microbatches; each copy keeps its
/// own sum, and the owner adds them once per step (engine/tied_weights.hpp). Other bits than those of one device.
void sum_ties_per_step(Split& split);

/// What the schedule needs to know of the edges between stages.
std::vector<ScheduleEdge> schedule_edges(const Split& split);

}  // namespace vpp
