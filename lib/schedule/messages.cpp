#include "schedule/messages.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace vpp {

namespace {

/// The ids of the edges that have a transfer, some of them several times.
std::vector<int> used_edges(const Schedule& lowered) {
    constexpr int kMostFlags = 1 << 20;  // beyond, ids are collected one by one
    std::vector<bool> is_used;
    std::vector<int> ids;
    for (const std::vector<Action>& list : lowered.actions) {
        for (const Action& action : list) {
            if (!is_transfer(action.kind)) continue;
            check(action.edge >= 0, "a transfer names an edge");
            check(action.microbatch >= 0 && action.microbatch < lowered.num_microbatches,
                  "a transfer belongs to a microbatch of the schedule");
            if (action.edge >= kMostFlags) {
                ids.push_back(action.edge);
                continue;
            }
            const auto edge = static_cast<size_t>(action.edge);
            if (edge >= is_used.size()) is_used.resize(edge + 1, false);
            is_used[edge] = true;
        }
    }
    for (size_t edge = 0; edge < is_used.size(); ++edge) {
        if (is_used[edge]) ids.push_back(static_cast<int>(edge));
    }
    return ids;
}

}  // namespace

EdgeNumbers::EdgeNumbers(std::vector<int> ids) : ids_(std::move(ids)) {
    std::sort(ids_.begin(), ids_.end());
    ids_.erase(std::unique(ids_.begin(), ids_.end()), ids_.end());
}

int EdgeNumbers::find(int id) const {
    const auto guess = static_cast<size_t>(id);  // without gaps an id is its number
    if (id >= 0 && guess < ids_.size() && ids_[guess] == id) return id;
    const auto found = std::lower_bound(ids_.begin(), ids_.end(), id);
    return found == ids_.end() || *found != id ? kNone : static_cast<int>(found - ids_.begin());
}

MessageNumbers::MessageNumbers(const Schedule& lowered)
    : edges_(used_edges(lowered)), num_microbatches_(static_cast<size_t>(lowered.num_microbatches)) {}

}  // namespace vpp
