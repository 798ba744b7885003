#include "launch/sweep.hpp"

#include "base/error.hpp"

namespace vpp {

namespace {

bool is_stop(int code) {
    return code == exit_code(ErrorKind::Stopped) || code == exit_code(ErrorKind::Interrupted);
}

void end_by_stop(SweepEnd& end, int code, const SweepHooks& hooks) {
    end.code = code;
    hooks.say("stopped as asked by a signal; the same command goes on from there");
}

}  // namespace

SweepEnd run_sweep(const std::vector<std::string>& folders, const SweepHooks& hooks) {
    SweepEnd end{0, std::vector<std::string>(folders.size())};
    for (size_t run = 0; run < folders.size(); ++run) {
        const std::string place =
            std::to_string(run + 1) + " of " + std::to_string(folders.size()) + ", " + folders[run];
        if (hooks.is_finished(run)) {
            hooks.say(place + ": finished before");
            continue;
        }
        if (hooks.is_stop_asked()) {
            end_by_stop(end, exit_code(ErrorKind::Stopped), hooks);
            break;
        }
        hooks.say(place);
        const SweepJobEnd job = hooks.run(run);
        if (is_stop(job.code)) {
            end_by_stop(end, job.code, hooks);
            break;
        }
        if (job.code != 0) {
            end.states[run] = "failed with " + std::to_string(job.code);
            hooks.say(place + ": " + end.states[run]);
            if (end.code == 0) end.code = job.code;
        }
        if (job.code == exit_code(ErrorKind::CommandLine)) break;
        // The signal came as the job ended by itself.
        if (job.stop_asked && run + 1 < folders.size()) {
            end_by_stop(end, exit_code(ErrorKind::Stopped), hooks);
            break;
        }
    }
    return end;
}

}  // namespace vpp
