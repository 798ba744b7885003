#include "app/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <optional>

#include "app/environment.hpp"
#include "report/screen.hpp"

namespace vpp {

namespace {

volatile std::sig_atomic_t has_live_line = 0;

/// 0 = no terminal, or one that does not know.
int own_width() {
    winsize size{};
    return isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

}  // namespace

Terminal output_terminal() {
    Terminal terminal;
    const int width = terminal_width_told().value_or(own_width());
    terminal.is_terminal = width > 0 && !is_terminal_dumb();
    if (width > 0) terminal.width = width;
    terminal.colour = terminal.is_terminal && !is_colour_unwanted();
    return terminal;
}

TerminalForJobs::TerminalForJobs() : is_told_(own_width() > 0 && !terminal_width_told()) {
    if (is_told_) tell_terminal_width(own_width());
}

TerminalForJobs::~TerminalForJobs() {
    if (is_told_) tell_terminal_width(std::nullopt);
}

void set_live_line(bool is_there) {
    has_live_line = is_there;
}

void take_live_line_off() {
    if (!has_live_line) return;
    const int interrupted = errno;
    // What cannot be written to a terminal that is gone needs no answer.
    [[maybe_unused]] const ssize_t written = ::write(STDOUT_FILENO, kTakeLiveLineOff, sizeof kTakeLiveLineOff - 1);
    errno = interrupted;
}

}  // namespace vpp
