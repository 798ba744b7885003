#include "launch/supervisor.hpp"

#include "base/error.hpp"
#include "checkpoint/going_on.hpp"
#include "launch/job_end.hpp"
#include "launch/restarts.hpp"

namespace vpp {

namespace {

/// A run that was to begin anew, or from one checkpoint, goes on from its own ones once it has some.
std::vector<std::string> next_line(const SupervisedJob& job, bool has_own_checkpoint) {
    std::vector<std::string> line = job.line;
    if (job.resume != "auto" && has_own_checkpoint) {
        line.emplace_back("--set");
        line.emplace_back("checkpoint.resume=auto");
    }
    return line;
}

std::optional<int> told_code(const SupervisorHooks& hooks) {
    const std::optional<RunEnd> end = hooks.is_holder() ? hooks.told() : std::nullopt;
    return end ? std::optional(end->exit_code) : std::nullopt;
}

}  // namespace

int supervise(const SupervisedJob& job, const SupervisorHooks& hooks) {
    RestartHistory history;
    std::vector<std::string> line = job.line;
    bool has_ever_begun = false;
    for (;;) {
        const RunProgress before = hooks.look();
        JobEnd end;
        end.resume = job.resume;
        end.child = hooks.run(line);
        const RunProgress now = hooks.look();
        end.has_begun = now != before;
        end.is_saved = now.is_saved();
        if (job.manner == StopManner::Save && end.child.ended_at_once) end.told = told_code(hooks);
        const Verdict verdict = judge(end, needs_trial(end) ? hooks.trial() : std::nullopt);
        if (!verdict.text.empty()) hooks.say(verdict.text);
        if (job.manner == StopManner::End) return verdict.code;  // a command that has nothing to go on from
        if (!verdict.text.empty() && hooks.is_holder()) hooks.keep({verdict.code, verdict.text});
        has_ever_begun = has_ever_begun || end.has_begun;
        const int64_t newest = has_ever_begun ? now.newest() : -1;  // what an earlier run has left tells nothing
        const RestartChoice choice = choose_restart(verdict.code, newest, history, job.max_restarts, job.resume);
        if (!choice.text.empty()) hooks.say(choice.text);
        if (!choice.restart) return verdict.code;
        if (hooks.is_stop_asked()) {
            hooks.say("stopped as asked by a signal; " + how_to_go_on(job.resume) + " from the last checkpoint");
            return exit_code(ErrorKind::Stopped);
        }
        line = next_line(job, has_ever_begun && now.checkpoint.has_value());
        history = {history.restarts + 1, newest};
    }
}

}  // namespace vpp
