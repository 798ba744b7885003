#pragma once
// Says what takes long while a model is tried op by op: a loop that never ends takes for ever.
#include <chrono>
#include <condition_variable>
#include <functional>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>

#include "base/elapsed.hpp"

namespace vpp {

/// Watches one op after another from a thread of its own. Writes a line when one has run for `patience`, and again
/// whenever that time has doubled.
class SlowTrial {
  public:
    /// `text_of` names an op, from that thread; it and `out` outlive this.
    explicit SlowTrial(std::function<std::string(int)> text_of, std::ostream& out = std::cerr,
                       Clock::duration patience = std::chrono::seconds(10));
    /// The next op begins.
    void begin(int op);

  private:
    void watch(const std::stop_token& stop);

    const std::function<std::string(int)> text_of_;
    std::ostream& out_;
    const Clock::duration patience_;
    std::mutex mutex_;
    std::condition_variable_any stopped_;
    int op_ = 0;
    Clock::time_point began_ = Clock::now();
    Clock::time_point due_ = began_ + patience_;
    std::jthread thread_;  // last: it uses all of the above
};

}  // namespace vpp
