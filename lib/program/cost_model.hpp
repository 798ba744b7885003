#pragma once
// What the ops of a model cost, whatever the split: estimated from FLOPs, or measured (pipeline.cost_file). Generators
// and the search get from it the costs of the stages of a split, in whole ticks.
#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "graph/split.hpp"
#include "graph/stages.hpp"
#include "plan/plan.hpp"
#include "schedule/costs.hpp"
#include "schedule/schedule.hpp"

namespace vpp {

/// Times of one op for one microbatch.
struct OpCosts {
    double forward = 0;          ///< F
    double backward = 0;         ///< B
    double input_gradient = 0;   ///< I
    double weight_gradient = 0;  ///< W
};

struct CostModel {
    std::vector<OpCosts> ops;       ///< by op
    double transfer = 0;            ///< of a hop between ranks, whatever it carries
    double transfer_of_a_byte = 0;  ///< beside it
    std::string unit;               ///< of these times, for people: "ms", "x F of a mean rank"
    std::string source;             ///< for people: where they come from; names the file's digest
    std::string warning;            ///< for people: what makes them doubtful; empty: nothing
    bool is_measured = false;       ///< from a cost file
};

/// Every field.
OpCosts& operator+=(OpCosts& sum, const OpCosts& one);

/// What is assumed of a machine without a cost file: a byte takes as long to send as so many FLOPs (a core of 50
/// GFLOP/s beside memory of 5 GB/s). Larger models make more FLOPs for every byte, so that it hardly matters for them.
inline constexpr double kFlopsOfABytesTransfer = 10;

/// From FLOPs: F costs an op's forward FLOPs; I the same for each of its inputs that is no weight and gets a gradient
/// (two count at most: a product has two, and a sum of many costs no more); W the same if it has a trained weight;
/// B = I + W. A tensor made of weights alone counts as a weight. The unit is what F of the whole model costs, over the
/// number of ranks. A model without FLOPs counts its ops.
CostModel estimate_costs(const Graph& graph, int num_ranks);

/// Ops that are computed again in backward: F once more, in I and B.
void add_recompute(CostModel& costs, OpRange range);

/// The plan's cost file (cost_file_of of program/cost_file.hpp), else estimate_costs; with what the plan recomputes.
/// Requires: a plan resolved for its world.
/// Throws:   as read_cost_file.
CostModel find_costs(const Plan& plan, const Graph& graph);

/// What split_method = "AUTO" goes by: F and B of the ops, and the plan's limit where it is in bytes. A rank holds as
/// many activations of stages as `compute` says, before it is lowered; null: those of its stages for one microbatch.
SplitTimes split_times(const CostModel& model, const Plan& plan, int stages_per_rank, const Schedule* compute);

/// The costs of the stages in whole ticks. A tick is a negative power of ten of the unit, at most a ten-thousandth of F
/// on a mean rank, and the same for every split of the model: doubles are added in the order of the ops and rounded
/// once, so that all machines get the same ticks. A transfer from stage s to s + 1 has the id s and carries what lives
/// across the cut: the model is seen as a chain, as generators and search see it.
ScheduleCosts costs_of_stages(const CostModel& model, const Graph& graph, const std::vector<int>& cuts, int num_ranks);

/// The same with a transfer for each edge of a split, for the simulator: those of one pair of stages arrive together,
/// gradients of tied weights by themselves.
ScheduleCosts costs_of_split(const CostModel& model, const Split& split, int num_ranks);

}  // namespace vpp
