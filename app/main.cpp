// Parse, run what was chosen, turn an Error into one line and an exit code.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <iostream>

#include "app/command_line.hpp"
#include "app/environment.hpp"
#include "app/failure.hpp"
#include "device/device.hpp"

namespace {

int run(int argc, char** argv) {
    try {
        return vpp::parse_command_line(argc, argv)();
    } catch (...) {
        return vpp::told_once();
    }
}

/// What was chosen, and all of its output given to who reads it.
int run_and_flush(int argc, char** argv) {
    const int code = run(argc, argv);
    const bool has_arrived = std::cout.flush() && std::fflush(stdout) == 0;
    return has_arrived ? code : vpp::told_lost_output(code);
}

/// A standard stream that is closed would be the next file that is opened, and what is printed would go there. Here
/// each use of it fails, as that of a closed one.
void hold_closed_streams() {
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (::fcntl(stream, F_GETFD) < 0) ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    }
}

/// Whether somebody may look at how the process ends: CUDA's profilers and libraries that are preloaded write then what
/// they have seen. For nobody else LibTorch's destructors are worth a third of a short command.
bool is_watched() {
    return vpp::has_started_card() || vpp::has_preloaded_libraries();
}

}  // namespace

int main(int argc, char** argv) {
    hold_closed_streams();
    std::signal(SIGCHLD, SIG_DFL);  // where a parent ignores it, nobody learns how a child of this process ends
    const int code = run_and_flush(argc, argv);
    if (!is_watched()) ::_exit(code);
    return code;
}
