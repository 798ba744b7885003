#include "schedule/pipeline_runs.hpp"

#include "schedule/generators.hpp"
#include "unit/schedule/support.hpp"

namespace vpp {
namespace {

using testing::prove;
using testing::texts;

TEST(PipelineRuns, OneBehindTheOtherWithLaterMicrobatches) {
    const Schedule step = repeat_runs(make_schedule("GPIPE", 2, 1, 2), 2);
    EXPECT_EQ(step.num_microbatches, 4);
    EXPECT_EQ(texts(step), (std::vector<std::string>{"0F0 0F1 0B0 0B1 0F2 0F3 0B2 0B3",  //
                                                     "1F0 1F1 1B0 1B1 1F2 1F3 1B2 1B3"}));
}

TEST(PipelineRuns, OneRunIsTheScheduleItself) {
    const Schedule run = make_schedule("1F1B", 4, 1, 8);
    EXPECT_EQ(texts(repeat_runs(run, 1)), texts(run));
}

TEST(PipelineRuns, GradientsAreReducedBehindTheLastRun) {
    Schedule run = make_schedule("GPIPE", 1, 1, 1);
    run.actions[0].push_back({ActionKind::ReduceGrad, 0});
    EXPECT_EQ(texts(repeat_runs(run, 3)), (std::vector<std::string>{"0F0 0B0 0F1 0B1 0F2 0B2 0REDUCE_GRAD"}));
}

TEST(PipelineRuns, EveryScheduleIsProvedHoldsNoMoreAndIdlesNoLongerThanItsRunsApart) {
    for (const ScheduleKind& kind : schedule_kinds()) {
        if (!kind.trains) continue;
        SCOPED_TRACE(kind.name);
        const Schedule run = make_schedule(kind.name, 4, kind.fewest_per_rank, 8);
        const auto once = prove(run);
        const auto thrice = prove(repeat_runs(run, 3));
        EXPECT_EQ(thrice.facts.num_computing, 3 * once.facts.num_computing);
        EXPECT_EQ(thrice.facts.peak_in_flight, once.facts.peak_in_flight);
        EXPECT_LE(thrice.simulation.makespan, 3 * once.simulation.makespan);
    }
}

}  // namespace
}  // namespace vpp
