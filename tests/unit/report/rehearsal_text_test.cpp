#include "report/rehearsal_text.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace vpp {
namespace {

RehearsalReport sample_rehearsal() {
    RehearsalReport report;
    report.microbatch_size = 8;
    report.num_passes = 3;
    report.loss = 2.3125;
    report.schedule = "1F1B";
    report.num_microbatches = 4;
    report.stages = {{0, 1.5, 3.25, 0.02, 0}, {1, 2.5, 4.75, 0.03, 0}};
    report.edges = {{0, 1, "blocks.1.out", "float32", {8, 128, 64}, 262144}, {0, 1, "scale", "float32", {}, 4}};
    report.ranks = {{1 << 20, 3 << 20, 5 << 20, 9 << 20, 10 << 20, 200 << 20},
                    {2 << 20, 6 << 20, 7 << 20, 7 << 20, 8 << 20, 210 << 20}};
    report.step_ms = 36.5;
    report.bubble = 0.213;
    return report;
}

TEST(RehearsalText, ALossThatIsNoNumberHasNoSign) {
    RehearsalReport report = sample_rehearsal();
    report.loss = -std::numeric_limits<double>::quiet_NaN();
    EXPECT_NE(rehearsal_text(report).find(", loss nan\n"), std::string::npos);
}

TEST(RehearsalText, Golden) {
    EXPECT_EQ(rehearsal_text(sample_rehearsal()),
              "dry run: a microbatch of 8 samples through 2 stages on 2 ranks, loss 2.3125\n"
              "stage  PP rank    forward   backward   transfer\n"
              "    0        0       1.50       3.25       0.02\n"
              "    1        1       2.50       4.75       0.03\n"
              "milliseconds of one microbatch, the quickest of 3 passes behind a first one\n"
              " from    to      bytes  dtype    shape            tensor\n"
              "    0     1  256.0 KiB  float32  [8, 128, 64]     blocks.1.out\n"
              "    0     1        4 B  float32  []               scale\n"
              " rank      state to be saved microbatch             whole step    process\n"
              "    0    1.0 MiB     3.0 MiB    5.0 MiB    9.0 MiB to 10.0 MiB  200.0 MiB\n"
              "    1    2.0 MiB     6.0 MiB    7.0 MiB     7.0 MiB to 8.0 MiB  210.0 MiB\n"
              "state: weights and buffers; with the optimizer's it is what is saved\n"
              "a step: 4 microbatches by 1F1B in about 36.50 ms, bubble 21.3 % (simulated)\n"
              "nothing was updated and nothing was written\n");
}

TEST(RehearsalText, OneOfEachReadsAsOneAndCrowdedCoresAreSaid) {
    RehearsalReport report = sample_rehearsal();
    report.stages.pop_back();
    report.ranks.pop_back();
    report.edges.clear();
    report.num_microbatches = report.num_passes = 1;
    report.microbatch_size = 1;
    report.are_waits_known = false;
    const std::string text = rehearsal_text(report);
    for (const char* part : {"a microbatch of 1 sample through 1 stage on 1 rank,", "the quickest of 1 pass behind",
                             "a step: 1 microbatch by", "more ranks than cores, so these times are too long\n"}) {
        EXPECT_NE(text.find(part), std::string::npos) << text;
    }
    EXPECT_EQ(text.find("tensor\n"), std::string::npos);
}

}  // namespace
}  // namespace vpp
