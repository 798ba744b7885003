#pragma once
// Collects what is wrong with a plan, so that all of it is shown at once, in the order of the text.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "plan/document.hpp"

namespace vpp {

class Problems {
  public:
    void add(const Place& place, std::string message) { found_.emplace_back(place, std::move(message)); }
    bool empty() const { return found_.empty(); }

    /// Throws Error{Plan} with all of them, sorted by place, when there are any; beyond 100 they are only counted.
    void raise(const PlanSources& sources) {
        if (found_.empty()) return;
        std::ranges::stable_sort(found_, {}, &std::pair<Place, std::string>::first);
        std::vector<Problem> problems;
        for (const auto& [place, message] : found_) {
            if (problems.size() == kMostShown) break;
            problems.push_back({message, sources.position(place)});
        }
        const size_t num_left = found_.size() - problems.size();
        if (num_left > 0) problems.push_back({"and " + std::to_string(num_left) + " more problems", std::nullopt});
        throw Error(ErrorKind::Plan, std::move(problems));
    }

  private:
    static constexpr size_t kMostShown = 100;
    std::vector<std::pair<Place, std::string>> found_;
};

}  // namespace vpp
