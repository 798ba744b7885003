#include "soft_card/streams.hpp"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <utility>

#include "base/clock_alignment.hpp"

namespace vpp::soft_card {

namespace {

std::atomic<bool> failed = false;

constexpr std::chrono::microseconds kLook{50};

}  // namespace

void fail() {
    failed = true;
}

bool has_failed() {
    return failed;
}

void Moment::reach() {
    nanoseconds_ = steady_nanoseconds();
    nanoseconds_.notify_all();
}

void Moment::wait_of_host() const {
    while (!is_reached() && !has_failed()) std::this_thread::sleep_for(kLook);
}

void Queue::come_first(uint64_t place) {
    for (uint64_t left = num_left_; left != place; left = num_left_) num_left_.wait(left);
}

void Queue::leave() {
    ++num_left_;
    num_left_.notify_all();
}

Stream::Stream(Queue* queue) : queue_(queue) {
    std::thread([this] { run(); }).detach();
}

void Stream::give(std::function<void()> work) {
    put({std::move(work), true, 0});
}

std::shared_ptr<const Moment> Stream::mark() {
    auto moment = std::make_shared<Moment>();
    put({[moment] { moment->reach(); }, false, 0});
    return moment;
}

void Stream::wait_for(std::shared_ptr<const Moment> moment) {
    if (moment->is_reached()) return;
    put({[moment = std::move(moment)] { moment->wait(); }, false, 0});
}

bool Stream::is_idle() {
    const std::lock_guard lock(mutex_);
    return tasks_.empty();
}

void Stream::begin_recording() {
    const std::lock_guard lock(mutex_);
    is_recording_ = true;
}

bool Stream::is_recording() {
    const std::lock_guard lock(mutex_);
    return is_recording_;
}

void Stream::have_replays_waited_for() {
    const std::lock_guard lock(mutex_);
    recorded_.is_waited_for = true;
}

void Stream::spoil_recording() {
    const std::lock_guard lock(mutex_);
    recorded_.is_spoiled = true;
}

Stream::Recorded Stream::end_recording() {
    const std::lock_guard lock(mutex_);
    is_recording_ = false;
    return std::exchange(recorded_, {});
}

void Stream::finish() {
    std::unique_lock lock(mutex_);
    while (!tasks_.empty() && !has_failed()) changed_.wait_for(lock, kLook);
}

void Stream::put(Task task) {
    const std::lock_guard lock(mutex_);
    if (is_recording_) return recorded_.work.push_back(std::move(task.work));
    if (queue_ != nullptr) task.place = queue_->enter();
    tasks_.push_back(std::move(task));
    changed_.notify_all();
}

void Stream::run() {
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [this] { return !tasks_.empty(); });
        const Task& task = tasks_.front();  // stays where it is while others are added
        lock.unlock();
        do_in_turn(task);
        lock.lock();
        tasks_.pop_front();
        if (tasks_.empty()) changed_.notify_all();
    }
}

/// What computes or copies leaves the queue when it begins, a wait when it ends.
void Stream::do_in_turn(const Task& task) {
    if (queue_ != nullptr) queue_->come_first(task.place);
    const bool is_wait = !task.may_be_late;
    if (queue_ != nullptr && !is_wait) queue_->leave();
    if (!is_wait) be_late();
    task.work();
    if (queue_ != nullptr && is_wait) queue_->leave();
}

bool is_told(const char* variable, const std::string& value) {
    const char* told = std::getenv(variable);
    return told != nullptr && told == value;
}

void be_late() {
    static const bool may = !is_told("VPP_SOFT_CARD_LATE", "0");
    constexpr unsigned kOneIn = 8;
    constexpr unsigned kMostMicroseconds = 200;
    thread_local std::minstd_rand random{std::random_device{}()};
    if (may && random() % kOneIn == 0) {
        std::this_thread::sleep_for(std::chrono::microseconds(random() % kMostMicroseconds));
    }
}

}  // namespace vpp::soft_card
