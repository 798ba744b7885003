#include "report/pipeline_text.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace vpp {
namespace {

PipelineEvent sample_event() {
    PipelineEvent event;
    event.first_step = 3;
    event.step = 200;
    event.schedule = "1F1B";
    event.num_ranks = 2;
    event.num_microbatches = 4;
    event.stages = {{0, 4.123, 8.311, 0.11, 3.2}, {1, 4.4, 8.9, 0.124, 2.71}};
    event.actions_ms = 16.104;
    event.predicted_ms = 15.2;
    event.bubble_idle = 0.1823;
    event.bubble_predicted = 0.15;
    return event;
}

TEST(PipelineTable, Golden) {
    EXPECT_EQ(pipeline_table(sample_event()),
              "pipeline of 1F1B, milliseconds of a step, the mean of the steps 3 to 200\n"
              "stage  PP rank    forward   backward   transfer       wait\n"
              "    0        0       4.12       8.31       0.11       3.20\n"
              "    1        1       4.40       8.90       0.12       2.71\n"
              "actions 16.10 ms a step, simulated with these times 15.20 ms\n"
              "bubble 18.2 %, simulated 15.0 %; messages and uneven actions make the difference\n");
}

TEST(PipelineTable, MoreRanksThanCoresHaveNoBubble) {
    PipelineEvent event = sample_event();
    event.bubble_idle.reset();
    event.bubble_predicted.reset();
    EXPECT_NE(pipeline_table(event).find("bubble - (more ranks than cores)\n"), std::string::npos);
}

TEST(PipelineTable, FitsATerminal) {
    PipelineEvent event = sample_event();
    event.schedule = "INTERLEAVED_ZERO_BUBBLE";
    event.first_step = 100'000;
    event.step = 900'000;
    std::istringstream lines(pipeline_table(event));
    int num_lines = 0;
    for (std::string line; std::getline(lines, line); ++num_lines) EXPECT_LE(line.size(), 100U) << line;
    EXPECT_GT(num_lines, 4) << "a title, a head, two stages and what follows";
}

}  // namespace
}  // namespace vpp
