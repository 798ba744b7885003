// Parse, run what was chosen, turn an Error into one line and an exit code.
#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "app/command_line.hpp"
#include "app/environment.hpp"
#include "app/failure.hpp"
#include "base/error.hpp"
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
    if (std::cout.flush() && std::fflush(stdout) == 0) return code;
    std::cerr << "vpp: error: standard output did not take all that was printed; make room where it goes" << std::endl;
    return code == 0 ? vpp::exit_code(vpp::ErrorKind::Io) : code;
}

/// Whether somebody may look at how the process ends: CUDA's profilers and libraries that are preloaded write then what
/// they have seen. For nobody else LibTorch's destructors are worth a third of a short command.
bool is_watched() {
    return vpp::has_started_card() || vpp::has_preloaded_libraries();
}

}  // namespace

int main(int argc, char** argv) {
    const int code = run_and_flush(argc, argv);
    if (!is_watched()) ::_exit(code);
    return code;
}
