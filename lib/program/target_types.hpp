#pragma once
// Whether the targets of the loss that a plan appends have a type that it takes. LibTorch would say it in the first
// backward, or in words of its own, and name nothing. A model with a loss of its own converts as it likes.
#include "data/fields.hpp"
#include "graph/graph.hpp"
#include "plan/plan.hpp"

namespace vpp {

/// What the data's fields tell.
/// Throws: Error{Plan} with how the field gets another type.
void check_target_field(const Plan& plan, const Fields& fields);

/// What the model's output has to do with it. Throws: as above.
void check_target_of_output(const Plan& plan, const Graph& graph);

}  // namespace vpp
