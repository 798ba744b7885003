#include "launch/job_end.hpp"

#include <algorithm>
#include <array>
#include <csignal>

#include "base/error.hpp"
#include "checkpoint/going_on.hpp"

namespace vpp {

namespace {

constexpr int kBySignal = 128;
// Of mpirun: the connection to its daemon on another host broke (ORTE_ERR_COMM_FAILURE), or that of ssh to the host.
constexpr int kLostDaemon = 205, kLostBySsh = 255;

/// Codes that vpp gives itself, so that the ranks have said what they mean.
bool is_own_code(int code) {
    using enum ErrorKind;
    static constexpr std::array kKinds{
        CommandLine, BadData,       MissingInput, Mesh, Bug,       OutOfMemory,      Output,  Io,
        RankLost,    RanksDisagree, Refused,      Plan, NotFinite, VerifyDifference, Stopped, Interrupted};
    return code == 0 ||
           std::any_of(kKinds.begin(), kKinds.end(), [&](ErrorKind kind) { return exit_code(kind) == code; });
}

bool is_signal(int code) {
    return code > kBySignal && code < kBySignal + 32;
}

/// Signals that a program gets by its own fault.
bool is_crash(int signal) {
    return signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE || signal == SIGABRT;
}

std::string killed_text(int signal) {
    if (signal == SIGKILL) {
        return "a rank was killed by signal 9 (SIGKILL): by somebody, or by the kernel when memory ran out (dmesg says "
               "so)";
    }
    if (is_crash(signal)) {
        return "a rank crashed (signal " + std::to_string(signal) +
               "), which is a bug in vpp, in a library or in the " + "hardware";
    }
    return "a rank was killed by signal " + std::to_string(signal);
}

std::string hang_text(Hang hang) {
    const HangLimits limits;
    if (hang == Hang::DeadChild) {
        return "mpirun hung: it did not notice the end of a rank for " + std::to_string(limits.dead_child.count()) +
               " s, and was killed";
    }
    if (hang == Hang::LeftBehind) {
        return "a rank was still stopped (SIGSTOP) " + std::to_string(limits.left_behind.count()) +
               " s after all others of this host had ended, and was killed";
    }
    return "mpirun still waited for other hosts " + std::to_string(limits.other_hosts.count()) +
           " s after the last rank of this one had ended, and was killed: a host or the link to it is lost";
}

/// A second signal may come when all is done.
Verdict ended_at_once(const JobEnd& end) {
    for (const int code : {end.child.code, end.told.value_or(-1)}) {
        if (code == 0 || code == exit_code(ErrorKind::Stopped)) return {code, ""};
    }
    return {exit_code(ErrorKind::Interrupted), "ended at once, as asked"};
}

Verdict stopped(const JobEnd& end) {
    if (!end.has_begun) {
        return {exit_code(ErrorKind::Stopped),
                "stopped as asked by a signal, before the first step; the same command goes on from there"};
    }
    if (end.is_saved) return {exit_code(ErrorKind::Stopped), "stopped as asked by a signal; everything is saved"};
    return {exit_code(ErrorKind::Interrupted),
            "mpirun ended the job before it could save; " + how_to_go_on(end.resume) + " from the last checkpoint"};
}

}  // namespace

bool needs_trial(const JobEnd& end) {
    return !end.child.stop_asked && end.child.hang == Hang::No && !is_own_code(end.child.code) && !end.has_begun;
}

Verdict judge(const JobEnd& end, const std::optional<std::string>& trouble) {
    const int code = end.child.code;
    if (end.child.ended_at_once) return ended_at_once(end);
    if (is_own_code(code)) return {code, ""};
    if (end.child.stop_asked) return stopped(end);
    if (end.child.hang != Hang::No) return {exit_code(ErrorKind::RankLost), hang_text(end.child.hang)};
    if ((code == kLostDaemon || code == kLostBySsh) && end.has_begun) {
        return {exit_code(ErrorKind::RankLost),
                "mpirun has lost another host: the host, its daemon orted there or the connection to it has ended"};
    }
    if (trouble) return {exit_code(ErrorKind::Mesh), "mpirun does not start these ranks: " + *trouble};
    return {exit_code(ErrorKind::RankLost),
            is_signal(code) ? killed_text(code - kBySignal)
                            : "mpirun ended with code " + std::to_string(code) + ", which none of the ranks gave"};
}

}  // namespace vpp
