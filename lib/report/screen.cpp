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

std::string without_old_live_lines(std::string_view written) {
    const std::string begin = std::string("\n") + kNoWrap, end = std::string(kWrap) + kRowUp;
    std::string kept;
    size_t from = 0;
    for (size_t frame = written.find(begin); frame != std::string_view::npos; frame = written.find(begin, frame + 1)) {
        const size_t frame_end = written.find(end, frame);
        if (frame_end == std::string_view::npos) break;
        const size_t behind = frame_end + end.size();
        if (!written.substr(behind).starts_with(kTakeLiveLineOff)) continue;
        kept += written.substr(from, frame - from);
        from = behind + sizeof kTakeLiveLineOff - 1;
    }
    return kept += written.substr(from);
}

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
