#pragma once
// Several reporters as one.
#include <memory>
#include <vector>

#include "report/event.hpp"

namespace vpp {

/// Forwards every event to each of its reporters, in the order they were added; none is fine.
class Reporters : public Reporter {
  public:
    /// Requires: reporter is not null. Owns: takes it.
    void add(std::unique_ptr<Reporter> reporter);
    void step(const StepEvent& event) override;
    void evaluation(const EvalEvent& event) override;
    void saved(const SaveEvent& event) override;
    void memory(const MemoryEvent& event) override;
    void pipeline(const PipelineEvent& event) override;

  private:
    std::vector<std::unique_ptr<Reporter>> reporters_;
};

}  // namespace vpp
