#pragma once
// Rules between keys of a plan, and the values that follow from others and from the number of ranks. Rules that need
// the data, the model or a schedule's own arithmetic are in the modules that know them.
// Letters: P = pp, v = virtual_chunks, M = num_microbatches, d = dp.
#include "plan/plan.hpp"

namespace vpp {

/// Checks the rules that need no number of ranks.
/// Throws: Error{Plan} with all problems, in the order of the keys.
void check_plan(const Plan& plan);

/// The plan for a world of `world` ranks: mesh.pp, dp, tp, pipeline.num_stages, num_microbatches, global_batch_size and
/// run.dir have values afterwards, and the resolved text holds them.
/// Requires: world >= 1.
/// Throws:   Error{Plan} with all problems; Error{Mesh} when nothing but the number of ranks is wrong.
Plan resolve_plan(Plan plan, int world);

/// The most ranks that a job may have.
inline constexpr int kMostRanks = 1 << 20;

/// The number of ranks that the plan itself asks for; 1 when it names none.
/// Throws: Error{Plan} for more than kMostRanks.
int natural_world(const Plan& plan);

}  // namespace vpp
