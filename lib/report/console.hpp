#pragma once
// The run as lines for a person: one line a report, its columns under each other.
//
//   step    10/300  loss  3.1416  grad norm     1.23  lr 3.0e-04   12.3 K tokens/s     82 ms  bubble ...
//
// On a terminal a live line stands below them (report/live_line.hpp).
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "report/event.hpp"
#include "report/screen.hpp"

namespace vpp {

/// The step line, without a line end. With a width, columns that do not fit are left out.
std::string step_line(const StepEvent& event, size_t width = 0);
/// The line of an evaluation, without a line end.
std::string evaluation_line(const EvalEvent& event);
/// The line of a checkpoint, without a line end; control bytes of the folder are replaced.
std::string saved_line(const SaveEvent& event);
std::string memory_line(const MemoryEvent& event);

struct ConsoleOptions {
    int64_t every = 10;  ///< steps; < 1 shows the first and the last step only
    /// Of the terminal, in columns; asked at every step, since windows change.
    std::function<int()> width = [] { return 120; };
    bool coloured = false;
};

/// Writes the lines to a screen.
/// Invariant: the first step it hears of and the last of the training are always shown, and between them every step
/// that `every` divides.
class ConsoleReporter : public Reporter {
  public:
    /// Requires: screen outlives the reporter.
    explicit ConsoleReporter(Screen& screen, ConsoleOptions options = {})
        : screen_(screen), options_(std::move(options)) {}
    void step(const StepEvent& event) override;
    void evaluation(const EvalEvent& event) override;
    void saved(const SaveEvent& event) override;
    void memory(const MemoryEvent& event) override;
    void pipeline(const PipelineEvent& event) override;

  private:
    Screen& screen_;
    ConsoleOptions options_;
    bool is_first_ = true;
};

}  // namespace vpp
