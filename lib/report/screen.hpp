#pragma once
// A terminal with lines that stay and, below them, one live line that is drawn again and again.
//
//   step    10/300  loss  3.1416 ...
//   step    20/300  loss  2.9183 ...
//   _                                      the cursor waits in an empty row: what others write begins there
//     7 %  [==>              ]  21/300  loss  2.9102  ETA 1 min 20 s
#include <chrono>
#include <functional>
#include <mutex>
#include <ostream>
#include <string>
#include <string_view>

namespace vpp {

/// What takes the live line off, from the row of the cursor; for whoever must end a process without a Screen.
inline constexpr char kTakeLiveLineOff[] = "\r\x1b[J";

/// What a screen has written, less the live lines that it took off again: a terminal shows the same behind it.
std::string without_old_live_lines(std::string_view written);

using ScreenClock = std::function<std::chrono::steady_clock::time_point()>;

struct ScreenOptions {
    bool is_live = false;  ///< false: show and make_way do nothing, and no escape is ever written
    /// How long make_way waits behind taking the line off: what others write may travel on a faster way to the
    /// terminal.
    std::chrono::milliseconds way = {};
    ScreenClock clock = std::chrono::steady_clock::now;
};

/// Safe from any thread. Streams that fail stop nothing.
/// Invariant: outside of calls no line is half written.
class Screen {
  public:
    /// Requires: out outlives the screen.
    explicit Screen(std::ostream& out, ScreenOptions options = {});
    /// Takes the live line off.
    ~Screen();
    Screen(const Screen&) = delete;
    Screen& operator=(const Screen&) = delete;

    /// A line that stays, or several, given without the last end.
    void print(const std::string& line);
    /// The live line from now on, at most ten times a second. Terminals narrower than the text cut it off.
    void show(const std::string& line);
    /// Takes the live line off, since somebody else is about to write whole lines; the next `show` but the very next
    /// moment's puts it back.
    void make_way();
    bool is_live() const { return options_.is_live; }

  private:
    void take_off();
    void draw();

    std::ostream& out_;
    ScreenOptions options_;
    std::mutex mutex_;
    std::string live_;
    bool is_drawn_ = false;
    std::chrono::steady_clock::time_point next_;  ///< not drawn by `show` before
};

}  // namespace vpp
