#include "base/slow_notice.hpp"

#include <chrono>
#include <utility>

#include "base/signals_blocked.hpp"
#include "base/units.hpp"

namespace vpp {

SlowNotice::SlowNotice(Logger log, std::string what, double first_seconds) {
    const SignalsBlocked blocked;
    thread_ = std::thread([this, log = std::move(log), what = std::move(what), first_seconds] {
        double so_far = 0, next = first_seconds;
        std::unique_lock lock(mutex_);
        while (!changed_.wait_for(lock, std::chrono::duration<double>(next - so_far), [&] { return has_ended_; })) {
            so_far = next;
            next *= 2;
            log->info("still " + what + ", " + duration_text(so_far) + " so far; does the disk answer?");
        }
    });
}

SlowNotice::~SlowNotice() {
    {
        const std::lock_guard lock(mutex_);
        has_ended_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

}  // namespace vpp
