#include "soft_card/streams.hpp"

#include <chrono>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <utility>

#include "base/clock_alignment.hpp"

namespace vpp::soft_card {

void Moment::reach() {
    nanoseconds_ = steady_nanoseconds();
    nanoseconds_.notify_all();
}

Stream::Stream() {
    std::thread([this] { run(); }).detach();
}

void Stream::give(std::function<void()> work) {
    put({std::move(work), true});
}

std::shared_ptr<const Moment> Stream::mark() {
    auto moment = std::make_shared<Moment>();
    put({[moment] { moment->reach(); }, false});
    return moment;
}

void Stream::wait_for(std::shared_ptr<const Moment> moment) {
    if (moment->is_reached()) return;
    put({[moment = std::move(moment)] { moment->wait(); }, false});
}

bool Stream::is_idle() {
    const std::lock_guard lock(mutex_);
    return tasks_.empty();
}

void Stream::finish() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return tasks_.empty(); });
}

void Stream::put(Task task) {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    changed_.notify_all();
}

void Stream::run() {
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [this] { return !tasks_.empty(); });
        const Task& task = tasks_.front();  // stays where it is while others are added
        lock.unlock();
        if (task.may_be_late) be_late();
        task.work();
        lock.lock();
        tasks_.pop_front();
        if (tasks_.empty()) changed_.notify_all();
    }
}

bool may_be_late() {
    static const bool may = [] {
        const char* late = std::getenv("VPP_SOFT_CARD_LATE");
        return late == nullptr || std::string(late) != "0";
    }();
    return may;
}

void be_late() {
    constexpr unsigned kOneIn = 8;
    constexpr unsigned kMostMicroseconds = 200;
    thread_local std::minstd_rand random{std::random_device{}()};
    if (may_be_late() && random() % kOneIn == 0) {
        std::this_thread::sleep_for(std::chrono::microseconds(random() % kMostMicroseconds));
    }
}

}  // namespace vpp::soft_card
