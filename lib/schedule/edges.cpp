#include "schedule/edges.hpp"

#include <set>

#include "base/error.hpp"

namespace vpp {

bool Route::ends_at(ActionKind kind) const {
    if (tied) return gives_weight_gradient(kind);
    return gradient ? gives_input_gradient(kind) : kind == ActionKind::F;
}

std::vector<Route> routes_of(const std::vector<ScheduleEdge>& edges, int num_stages, bool forward_only) {
    std::set<int> ids;
    std::vector<Route> routes;
    for (const ScheduleEdge& edge : edges) {
        check(edge.id >= 0 && ids.insert(edge.id).second, "an edge has an id of its own");
        check(edge.producer >= 0 && edge.producer < edge.consumer && edge.consumer < num_stages,
              "an edge goes from a stage to a later one");
        if (!edge.tied) routes.push_back({edge.id, false, edge.producer, edge.consumer});
        check(edge.has_gradient || !edge.tied, "a tied parameter has a gradient");
        if (!edge.has_gradient) continue;
        check(edge.gradient_to >= edge.producer && edge.gradient_to < edge.consumer,
              "a gradient goes to an earlier user of the value or to its producer");
        if (!forward_only) routes.push_back({edge.id, true, edge.consumer, edge.gradient_to, edge.tied});
    }
    return routes;
}

std::vector<StageRoutes> routes_by_stage(const std::vector<Route>& routes, int num_stages) {
    std::vector<StageRoutes> stages(static_cast<size_t>(num_stages));
    for (const Route& route : routes) {
        StageRoutes& from = stages.at(static_cast<size_t>(route.from));
        StageRoutes& to = stages.at(static_cast<size_t>(route.to));
        (route.tied ? from.tied_out : route.gradient ? from.gradients_out : from.values_out).push_back(route);
        (route.tied ? to.tied_in : route.gradient ? to.gradients_in : to.values_in).push_back(route);
    }
    return stages;
}

std::vector<ScheduleEdge> chain_edges(int num_stages) {
    std::vector<ScheduleEdge> edges;
    for (int stage = 0; stage + 1 < num_stages; ++stage) edges.push_back({stage, stage, stage + 1, true, stage});
    return edges;
}

}  // namespace vpp
