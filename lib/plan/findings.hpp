#pragma once
// What the rules of a plan found: problems, each at the position of a key.
#include <string>
#include <utility>
#include <vector>

#include "plan/plan.hpp"

namespace vpp {

/// The problems of one plan, each at the position of a key.
class Findings {
  public:
    explicit Findings(const Plan& plan) : plan_(plan) {}

    void add(const std::string& key, std::string message) {
        auto position = plan_.where(key);
        if (!position) position = SourcePosition{printable(plan_.file), 0, 0, ""};
        problems_.push_back({std::move(message), std::move(position)});
    }

    bool empty() const { return problems_.empty(); }

    void raise() const {
        if (!problems_.empty()) throw Error(ErrorKind::Plan, problems_);
    }

  private:
    const Plan& plan_;
    std::vector<Problem> problems_;
};

}  // namespace vpp
