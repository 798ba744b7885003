#pragma once
// Rank 0's standard output while a training runs: lines, and on a terminal a live line below them that makes way for
// the log.
#include <memory>
#include <string>

#include "app/job.hpp"
#include "report/event.hpp"
#include "report/screen.hpp"

namespace vpp {

/// One at a time; the log goes around its live line as long as it lives.
class Display {
  public:
    explicit Display(const Job& job);
    ~Display();
    Display(const Display&) = delete;
    Display& operator=(const Display&) = delete;

    /// The run as lines. It must not outlive the display.
    std::unique_ptr<Reporter> reporter();
    /// Whole lines, the last one ended.
    void print(std::string lines);

  private:
    Logger log_;
    int64_t every_;
    Screen screen_;
};

}  // namespace vpp
