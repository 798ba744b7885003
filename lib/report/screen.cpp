#include "report/screen.hpp"

#include <thread>
#include <utility>

namespace vpp {

namespace {

constexpr std::chrono::milliseconds kBetween{100};

// Without line wrap a terminal that became narrower still shows one row.
constexpr const char* kNoWrap = "\x1b[?7l";
constexpr const char* kWrap = "\x1b[?7h";
constexpr const char* kRowUp = "\r\x1b[A";

}  // namespace

Screen::Screen(std::ostream& out, ScreenOptions options) : out_(out), options_(std::move(options)) {}

Screen::~Screen() {
    take_off();
    out_.flush();
}

void Screen::print(const std::string& line) {
    const std::lock_guard lock(mutex_);
    const bool was_drawn = is_drawn_;
    take_off();
    out_ << line << '\n';
    if (was_drawn) draw();
    out_.flush();
}

void Screen::show(const std::string& line) {
    if (!options_.is_live) return;
    const std::lock_guard lock(mutex_);
    live_ = line;
    const auto now = options_.clock();
    if (now < next_) return;
    next_ = now + kBetween;
    take_off();
    draw();
    out_.flush();
}

void Screen::make_way() {
    const std::lock_guard lock(mutex_);
    if (!is_drawn_) return;
    take_off();
    out_.flush();
    next_ = options_.clock() + kBetween;
    if (options_.way.count() > 0) std::this_thread::sleep_for(options_.way);
}

void Screen::take_off() {
    if (is_drawn_) out_ << kTakeLiveLineOff;
    is_drawn_ = false;
}

void Screen::draw() {
    out_ << '\n' << kNoWrap << live_ << kWrap << kRowUp;
    is_drawn_ = true;
}

}  // namespace vpp
