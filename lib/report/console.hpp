#pragma once
// The run as lines for a person: one line a report, its columns under each other.
//
//   step    10/300  loss  3.1416  grad norm     1.23  lr 3.0e-04   12.3 K tokens/s     82 ms  bubble ...
#include <cstdint>
#include <ostream>
#include <string>

#include "report/event.hpp"

namespace vpp {

/// The step line, without a line end.
std::string step_line(const StepEvent& event);
/// The line of an evaluation, without a line end.
std::string evaluation_line(const EvalEvent& event);
/// The line of a checkpoint, without a line end; control bytes of the folder are replaced.
std::string saved_line(const SaveEvent& event);
std::string memory_line(const MemoryEvent& event);

/// Writes the lines to a stream and flushes each.
/// Invariant: the first step it hears of and the last of the training are always shown, and between them every step
/// that `every` divides.
class ConsoleReporter : public Reporter {
  public:
    /// Requires: out outlives the reporter. `every` < 1 shows the first and the last step only.
    ConsoleReporter(std::ostream& out, int64_t every) : out_(out), every_(every) {}
    void step(const StepEvent& event) override;
    void evaluation(const EvalEvent& event) override;
    void saved(const SaveEvent& event) override;
    void memory(const MemoryEvent& event) override;
    void pipeline(const PipelineEvent& event) override;

  private:
    std::ostream& out_;
    int64_t every_;
    bool is_first_ = true;
};

}  // namespace vpp
