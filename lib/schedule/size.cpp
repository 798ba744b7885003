#include "schedule/size.hpp"

#include <algorithm>
#include <string>

#include "base/error.hpp"

namespace vpp {

void check_size(const ScheduleSize& size) {
    const auto at_least_one = [](const char* key, int value) {
        if (value >= 1) return;
        throw Error(ErrorKind::Plan,
                    std::string(key) + " is too small (got " + std::to_string(value) + ", expected at least 1); try 1");
    };
    at_least_one("num_stages", size.num_ranks);
    at_least_one("virtual_chunks", size.stages_per_rank);
    at_least_one("num_microbatches", size.num_microbatches);
    const int64_t num_stages = int64_t{size.num_ranks} * size.stages_per_rank;
    if (num_stages <= kMostStageMicrobatches / size.num_microbatches) return;
    const std::string product = "num_stages " + std::to_string(size.num_ranks) + " x virtual_chunks " +
                                std::to_string(size.stages_per_rank) + " x num_microbatches " +
                                std::to_string(size.num_microbatches);
    const int64_t fitting = kMostStageMicrobatches / num_stages;
    const std::string remedy = fitting > 0 ? "num_microbatches = " + std::to_string(fitting) : "fewer stages";
    throw Error(ErrorKind::Plan, "the schedule is too long (" + product + ", expected a product of at most " +
                                     std::to_string(kMostStageMicrobatches) + "); try " + remedy);
}

void check_one_stage_per_rank(const ScheduleSize& size, const char* name, const char* instead) {
    if (size.stages_per_rank == 1) return;
    throw Error(ErrorKind::Plan, std::string(name) + " puts one stage on each rank (got virtual_chunks = " +
                                     std::to_string(size.stages_per_rank) + ", expected 1); try virtual_chunks = 1" +
                                     " or schedule_type = \"" + instead + "\"");
}

}  // namespace vpp
