#pragma once
// Edges seen from the stages: what a stage waits for and what it hands on. All dependencies between stages come from
// here, never from s-1 and s+1, so values may skip stages and have several consumers.
#include <vector>

#include "schedule/schedule.hpp"

namespace vpp {

/// The way of one edge's value or gradient, for each microbatch.
/// Forward: F of the producer -> F of the consumer. Gradient: B or I of the consumer -> B or I of gradient_to; of a
/// tied parameter: B or W of the consumer -> B or W of gradient_to.
struct Route {
    int edge = 0;  ///< its id
    bool gradient = false;
    int from = 0;  ///< stage
    int to = 0;    ///< stage
    bool tied = false;

    /// Whether an action of that kind is an end of this route: at stage `from` it makes what is carried, at `to` it
    /// needs it.
    bool ends_at(ActionKind kind) const;
    ActionKind send_kind() const { return gradient ? ActionKind::SendB : ActionKind::SendF; }
    ActionKind receive_kind() const { return gradient ? ActionKind::RecvB : ActionKind::RecvF; }
};

/// The routes that begin or end at one stage, in the order of the edges.
struct StageRoutes {
    std::vector<Route> values_in, values_out, gradients_in, gradients_out;
    std::vector<Route> tied_in, tied_out;  ///< gradients of tied parameters
};

/// The routes of all edges: an edge's value (a tied one has none), then its gradient if it has one and `forward_only`
/// is false.
/// Requires: ids are unique and not negative; 0 <= producer <= gradient_to < consumer < num_stages.
/// Throws:   Error{Bug} when they are not: edges come from the split.
std::vector<Route> routes_of(const std::vector<ScheduleEdge>& edges, int num_stages, bool forward_only);

/// The same, by stage.
std::vector<StageRoutes> routes_by_stage(const std::vector<Route>& routes, int num_stages);

/// Edges 0..S-2, edge s from stage s to s+1 with a gradient: a model without skips, for drawings and comparisons.
std::vector<ScheduleEdge> chain_edges(int num_stages);

}  // namespace vpp
