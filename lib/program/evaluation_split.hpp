#pragma once
// The evaluation graph is another one than the training graph (the mode is folded into it), but its stages must own the
// same parameters: rank by rank, evaluation uses the weights that training holds there.
#include <vector>

#include "graph/graph.hpp"
#include "graph/stages.hpp"

namespace vpp {

/// Cuts of the evaluation graph such that every parameter is used in stages that have it in training. Where several
/// cuts fit, the one with the fewest bytes over it, then the earliest.
/// Throws Error{Plan} when a stage would be without ops.
std::vector<int> match_split(const Graph& evaluation, const Graph& training, const Split& training_split);

/// Throws Error{Plan} where a stage of evaluation uses a parameter that changes in training and is not there then, as
/// one op may that joins what training has in two stages: nobody would keep it up to date there.
void check_weights_follow(const Graph& evaluation, const Split& split, const Graph& training,
                          const Split& training_split);

}  // namespace vpp
