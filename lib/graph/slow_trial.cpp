#include "graph/slow_trial.hpp"

#include "base/units.hpp"

namespace vpp {

SlowTrial::SlowTrial(std::function<std::string(int)> text_of, std::ostream& out, Clock::duration patience)
    : text_of_(std::move(text_of)),
      out_(out),
      patience_(patience),
      thread_([this](const std::stop_token& stop) { watch(stop); }) {}

void SlowTrial::begin(int op) {
    const std::lock_guard lock(mutex_);
    op_ = op;
    began_ = Clock::now();
    due_ = began_ + patience_;
}

void SlowTrial::watch(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
        const Clock::time_point due = due_;  // which may move meanwhile
        stopped_.wait_until(lock, stop, due, [] { return false; });
        if (stop.stop_requested() || Clock::now() < due_) continue;
        const double seconds = seconds_since(began_);
        due_ = Clock::now() + (Clock::now() - began_);
        out_ << "vpp: " + text_of_(op_) + " has run for " + fixed_text(seconds, 0) +
                    " s on trial, to see shapes; where it is a loop that does not end, stop this and mend it\n"
             << std::flush;
    }
}

}  // namespace vpp
