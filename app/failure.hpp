#pragma once
// From whatever was thrown to one line and one exit code, however many processes it was thrown in.
#include <chrono>
#include <optional>
#include <string>

#include "comm/mpi_session.hpp"

namespace vpp {

/// When all ranks throw the same error, rank 0 has said it and ended the job before the others speak; on a machine that
/// has more to do, mpirun takes half a second for the end.
constexpr std::chrono::milliseconds kFirstRankSpeaks{1000};

struct Failure {
    int code;
    std::string text;
};

/// Of what is being handled.
Failure current_failure();

/// Writes the line, below whatever is redrawn on the terminal.
void say(const std::string& text);

/// The code of a command that ended with this one and whose output did not all arrive, which is said here.
int told_lost_output(int code);

/// The code of what was thrown on every rank before they can talk; the first of them says it. mpirun ends the job with
/// the first process that ends, so the others wait for that one; srun lets each come to its own end.
int told_once(const std::optional<LaunchInfo>& launch);

/// The same for what may be thrown before the environment is known to be that of a launch.
int told_once();

}  // namespace vpp
