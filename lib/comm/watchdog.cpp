#include "comm/watchdog.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <stop_token>

namespace vpp {

namespace {

double steady_seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Longer gaps between two looks mean that this process itself did not run.
constexpr double kMaxGapSeconds = 0.5;

}  // namespace

Watchdog::Phase& Watchdog::Phase::operator=(Phase&& other) noexcept {
    if (this != &other) {
        end();
        watchdog_ = std::exchange(other.watchdog_, nullptr);
        id_ = other.id_;
    }
    return *this;
}

void Watchdog::Phase::end() {
    if (watchdog_ != nullptr) std::exchange(watchdog_, nullptr)->end(id_);
}

Watchdog::Watchdog(Options options) : options_(std::move(options)) {
    if (!options_.now) options_.now = steady_seconds;
    last_look_seconds_ = options_.now();
    if (options_.period_seconds <= 0) return;
    thread_ = std::jthread([this](const std::stop_token& stop) {
        std::mutex mutex;
        std::unique_lock lock(mutex);
        std::condition_variable_any wake;
        const std::chrono::duration<double> period(options_.period_seconds);
        while (!stop.stop_requested()) {
            wake.wait_for(lock, stop, period, [] { return false; });
            look();
        }
    });
}

Watchdog::~Watchdog() = default;

Watchdog::Phase Watchdog::begin(std::string text, double seconds, int code) {
    const std::lock_guard lock(mutex_);
    running_[next_id_] = {std::move(text), options_.now() + seconds, code};
    return {this, next_id_++};
}

void Watchdog::end(uint64_t id) {
    const std::lock_guard lock(mutex_);
    running_.erase(id);
}

void Watchdog::look() {
    Running expired;
    {
        const std::lock_guard lock(mutex_);
        const double now = options_.now();
        const double gap = now - std::exchange(last_look_seconds_, now) - options_.period_seconds;
        if (gap > kMaxGapSeconds) {
            for (auto& [id, phase] : running_) phase.expires_seconds += gap;
        }
        const auto found = std::find_if(running_.begin(), running_.end(),
                                        [&](const auto& entry) { return entry.second.expires_seconds < now; });
        if (fatal_ || found == running_.end()) return;
        fatal_ = true;
        expired = found->second;
    }
    if (options_.on_fatal) options_.on_fatal(expired.text, expired.code);
}

}  // namespace vpp
