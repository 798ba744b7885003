#include "base/live_bytes.hpp"

#include <atomic>

namespace vpp::live_bytes {

namespace {

std::atomic<int64_t> alive{0};
std::atomic<int64_t> most{0};
thread_local int num_unfilled = 0;

void raise_peak(int64_t bytes) {
    int64_t known = most.load(std::memory_order_relaxed);
    while (bytes > known && !most.compare_exchange_weak(known, bytes, std::memory_order_relaxed)) {
    }
}

}  // namespace

void add(int64_t bytes) {
    const int64_t then = alive.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    if (bytes > 0) raise_peak(then);
}

int64_t now() {
    return alive.load(std::memory_order_relaxed);
}

int64_t peak() {
    return most.load(std::memory_order_relaxed);
}

void restart_peak() {
    most.store(now(), std::memory_order_relaxed);
}

Unfilled::Unfilled() {
    ++num_unfilled;
}

Unfilled::~Unfilled() {
    --num_unfilled;
}

bool Unfilled::is_on() {
    return num_unfilled > 0;
}

}  // namespace vpp::live_bytes
