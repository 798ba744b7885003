#include "app/stop_signals.hpp"

#include <unistd.h>

#include <csignal>

#include "app/terminal.hpp"
#include "base/error.hpp"
#include "launch/child.hpp"

namespace vpp::stop_signals {

namespace {

volatile std::sig_atomic_t has_come = 0;
volatile std::sig_atomic_t was_interrupted = 0;
volatile std::sig_atomic_t was_terminated = 0;

void note(int signal) {
    // Whoever sent it may end the process before it can tidy up.
    take_live_line_off();
    if (signal == SIGINT) {
        if (was_interrupted) _exit(exit_code(ErrorKind::Interrupted));
        was_interrupted = 1;
    }
    if (signal == SIGTERM) was_terminated = 1;
    has_come = 1;
}

}  // namespace

void listen() {
    struct sigaction action {};
    action.sa_handler = note;
    action.sa_flags = SA_RESTART;  // reads and writes go on
    sigemptyset(&action.sa_mask);
    for (int signal : {SIGUSR1, SIGTERM, SIGINT}) sigaction(signal, &action, nullptr);
    if (!is_ignored(SIGHUP)) sigaction(SIGHUP, &action, nullptr);
}

void outlive_readers() {
    signal(SIGPIPE, SIG_IGN);
}

bool came() {
    return has_come != 0;
}

bool is_being_ended() {
    return was_terminated != 0;
}

}  // namespace vpp::stop_signals
