#include "launch/restarts.hpp"

#include "base/error.hpp"
#include "checkpoint/going_on.hpp"

namespace vpp {

namespace {

std::string place_text(int64_t newest_step) {
    return newest_step < 0 ? "before the first step" : "at step " + std::to_string(newest_step);
}

}  // namespace

RestartChoice choose_restart(int code, int64_t newest_step, const RestartHistory& history, int max_restarts,
                             const std::string& resume) {
    if (code != exit_code(ErrorKind::RankLost)) return {};
    if (max_restarts == 0) {
        return {false,
                how_to_go_on(resume) + " from the last checkpoint; run.max_restarts = 3 would do that by itself"};
    }
    if (history.restarts >= max_restarts) {
        return {false, "not started again: run.max_restarts = " + std::to_string(max_restarts) + " allows no more"};
    }
    if (history.restarts > 0 && newest_step <= history.newest_step) {
        return {false,
                "not started again: no new step since the last restart, which was " + place_text(history.newest_step)};
    }
    return {true, "lost " + place_text(newest_step) + "; restart " + std::to_string(history.restarts + 1) + " of " +
                      std::to_string(max_restarts)};
}

}  // namespace vpp
