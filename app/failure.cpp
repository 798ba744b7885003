#include "app/failure.hpp"

#include <exception>
#include <iostream>
#include <new>
#include <thread>

#include "app/environment.hpp"
#include "app/stop_signals.hpp"
#include "app/terminal.hpp"
#include "base/error.hpp"
#include "graph/torch_errors.hpp"

namespace vpp {

namespace {

// Where rank 0 may not even have started yet.
constexpr std::chrono::milliseconds kFirstRankIsThere{20000};

/// Whether mpirun has begun to end the job, within so long. A process that does not listen to it is ended here.
bool is_ended_within(std::chrono::milliseconds time) {
    const auto latest = std::chrono::steady_clock::now() + time;
    while (!stop_signals::is_being_ended()) {
        if (std::chrono::steady_clock::now() > latest) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return true;
}

std::optional<LaunchInfo> known_launch() {
    try {
        return launch_info(environment_of(launch_variables()));
    } catch (const Error&) {
        return std::nullopt;
    }
}

}  // namespace

Failure current_failure() {
    try {
        throw;
    } catch (const Error& error) {
        return {exit_code(error.kind()), error.what()};
    } catch (const std::bad_alloc&) {
        return {exit_code(ErrorKind::OutOfMemory),
                "out of memory; use more stages, smaller microbatches (a larger pipeline.num_microbatches), or fewer "
                "ranks here"};
    } catch (const std::exception& error) {
        try {
            throw_if_known(error);
        } catch (...) {
            return current_failure();
        }
        return {exit_code(ErrorKind::Bug), std::string("this is a bug in vpp: ") + error.what()};
    }
}

void say(const std::string& text) {
    take_live_line_off();
    std::cerr << "vpp: error: " << text << std::endl;
}

int told_lost_output(int code) {
    say("standard output did not take all that was printed; make room where it goes, or let its reader stay");
    return code == 0 ? exit_code(ErrorKind::Io) : code;
}

int told_once(const std::optional<LaunchInfo>& launch) {
    const Failure failure = current_failure();
    const bool is_first = !launch || launch->rank == 0;
    if (is_first) say(failure.text);
    if (!is_first && !launch->by_srun && !is_ended_within(kFirstRankIsThere)) say(failure.text);
    return failure.code;
}

int told_once() {
    return told_once(known_launch());
}

}  // namespace vpp
