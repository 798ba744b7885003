#include "report/console.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <sstream>
#include <vector>

#include "unit/report/support.hpp"
#include "unit/report/terminal_image.hpp"

namespace vpp {
namespace {

using test::sample_step;

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
}

TEST(Console, AStepIsOneLine) {
    EXPECT_EQ(step_line(sample_step()),
              "step    10/300  loss  3.1416  grad norm     1.23  lr 3.0e-04   12.3 K tokens/s     82 ms  "
              "bubble  21 % (worst 35 % rank 3)    mem 412.0 MiB  act  24.0 MiB  ETA 1 min 20 s");
}

TEST(Console, FlopsStandBehindTheRate) {
    StepEvent event = sample_step();
    event.flops = 263.36e6;
    EXPECT_NE(step_line(event).find("  12.3 K tokens/s   3.2 GFLOP/s     82 ms  "), std::string::npos)
        << step_line(event);
}

TEST(Console, NarrowTerminalsShowWhatMattersMost) {
    const StepEvent event = sample_step();
    EXPECT_EQ(step_line(event, 132),
              "step    10/300  loss  3.1416  grad norm     1.23  lr 3.0e-04   12.3 K tokens/s     82 ms  "
              "ETA 1 min 20 s");
    EXPECT_EQ(step_line(event, 80), "step    10/300  loss  3.1416  lr 3.0e-04   12.3 K tokens/s  ETA 1 min 20 s");
    EXPECT_EQ(step_line(event, 40), "step    10/300  loss  3.1416");
    for (size_t width = 1; width < 170; ++width) EXPECT_LE(step_line(event, width).size(), width);
}

TEST(Console, InFp16TheScaleIsShown) {
    StepEvent event = sample_step();
    event.loss_scale = 65536;
    event.skipped = true;
    const std::string line = step_line(event);
    EXPECT_NE(line.find("  loss  3.1416 (skipped)  grad norm     1.23  scale 65536  lr "), std::string::npos) << line;
}

TEST(Console, WhatIsNotKnownIsADash) {
    StepEvent event = sample_step(7);
    event.tokens_per_second = 0;
    event.step_ms = 4.25;
    event.bubble_mean = event.bubble_worst = std::nullopt;
    event.eta_seconds = -1;
    EXPECT_EQ(step_line(event),
              "step     7/300  loss  3.1416  grad norm     1.23  lr 3.0e-04     96.4 samples/s    4.2 ms  "
              "bubble -      mem 412.0 MiB  act  24.0 MiB  ETA -");
    event.samples_per_second = std::numeric_limits<double>::infinity();
    EXPECT_NE(step_line(event).find("  - samples/s"), std::string::npos);
}

TEST(Console, ColumnsStandUnderEachOther) {
    StepEvent small = sample_step(9);
    small.loss = 0.5;
    small.grad_norm = 1234567;
    small.bubble_mean = 1;
    small.bubble_worst = 0.05;
    small.memory_bytes = small.activation_bytes = 1000;
    for (const char* column : {"loss", "grad norm", "lr", "tokens/s", "ms", "bubble", "mem", "act", "ETA"}) {
        EXPECT_EQ(step_line(small).find(column), step_line(sample_step(250)).find(column)) << step_line(small);
    }
}

TEST(Console, MemoryIsThatOfTheFullestRank) {
    const MemoryEvent event{2, {{30 << 20, 1 << 20, 2 << 20, 2 << 20}, {10 << 20, 24 << 20, 23 << 20, 25 << 20}}};
    EXPECT_EQ(memory_line(event),
              "mem      2  rank 1 holds most: 10.0 MiB weights and state, 24.0 MiB activations and messages "
              "(simulated 23.0 MiB to 25.0 MiB)");
}

TEST(Console, LossesOfAnySizeAreReadable) {
    StepEvent event = sample_step();
    event.loss = -std::numeric_limits<double>::quiet_NaN();
    event.grad_norm = std::numeric_limits<double>::infinity();
    EXPECT_NE(step_line(event).find("loss     nan  grad norm      inf"), std::string::npos) << step_line(event);
    event.loss = 12345678.9;
    EXPECT_NE(step_line(event).find("loss 1.235e+07"), std::string::npos) << step_line(event);
    event.loss = std::numeric_limits<double>::max();
    EXPECT_NE(step_line(event).find("loss 1.798e+308"), std::string::npos) << step_line(event);
}

TEST(Console, TheFirstTheLastAndEveryNthStepAreShown) {
    std::ostringstream out;
    Screen screen(out);
    ConsoleReporter console(screen, {5});
    for (int64_t step = 3; step <= 17; ++step) {
        StepEvent event = sample_step(step);
        event.total_steps = 17;
        console.step(event);
    }
    const std::vector<std::string> lines = lines_of(out.str());
    ASSERT_EQ(lines.size(), 5u) << out.str();
    const char* const starts[] = {"step     3/17", "step     5/17", "step    10/17", "step    15/17", "step    17/17"};
    for (size_t i = 0; i < lines.size(); ++i) EXPECT_EQ(lines[i].rfind(starts[i], 0), 0u) << lines[i];
}

TEST(Console, WithoutAnIntervalOnlyTheEndsAreShown) {
    std::ostringstream out;
    Screen screen(out);
    ConsoleReporter console(screen, {0});
    for (int64_t step = 1; step <= 300; ++step) console.step(sample_step(step));
    EXPECT_EQ(lines_of(out.str()).size(), 2u);
}

TEST(Console, AnEvaluationShowsTheMetricsThatWereAskedFor) {
    EXPECT_EQ(evaluation_line({50, 2.5, 512, 1.25, 0.75, 12.1825}),
              "eval    50  loss  2.5000  accuracy 75.00%  perplexity 12.182  over 512 samples in 1.2 s");
    EXPECT_EQ(evaluation_line({50, 2.5, 512, 1.25, 0.75}),
              "eval    50  loss  2.5000  accuracy 75.00%  over 512 samples in 1.2 s");
}

TEST(Console, EvaluationsAndCheckpointsHaveTheirLines) {
    std::ostringstream out;
    Screen screen(out);
    ConsoleReporter console(screen);
    console.evaluation({50, 2.71828, 512, 1.25});
    console.saved({50, "runs/g\x1b[2Jpt/step-00000050", 12'902'400, 0.31});
    EXPECT_EQ(out.str(),
              "eval    50  loss  2.7183  over 512 samples in 1.2 s\n"
              "save    50  runs/g?[2Jpt/step-00000050  12.3 MiB in 0.3 s, training paused 0.0 ms\n");
}

TEST(Console, ATerminalHasALiveLineBelowTheLines) {
    std::ostringstream out;
    test::TerminalImage image(70);
    {
        ScreenOptions options;
        options.is_live = true;
        Screen screen(out, options);
        ConsoleReporter console(screen, {10, [] { return 70; }});
        console.step(sample_step(1));
        console.evaluation({1, 2.71828, 512, 1.25});
        image.write(out.str());
        out.str("");
        const std::vector<std::string> rows = image.rows();
        ASSERT_EQ(rows.size(), 4u);
        EXPECT_EQ(rows[0], "step     1/300  loss  3.1416   12.3 K tokens/s  ETA 1 min 20 s");
        EXPECT_EQ(rows[1], "eval     1  loss  2.7183  over 512 samples in 1.2 s");
        EXPECT_EQ(rows[2], "");
        EXPECT_EQ(rows[3], "  0 %  [>                     ]    1/300  loss  3.1416  ETA 1 min 20 s");
    }
    image.write(out.str());
    EXPECT_EQ(image.rows().size(), 2u);
}

TEST(Console, ThePipelineIsATable) {
    std::ostringstream out;
    Screen screen(out);
    ConsoleReporter reporter(screen, {0, [] { return 120; }});
    PipelineEvent event;
    event.schedule = "1F1B";
    event.stages = {{0, 1, 2, 0, 0}};
    reporter.pipeline(event);
    EXPECT_EQ(out.str().substr(0, 16), "pipeline of 1F1B");
}

TEST(Console, AStreamThatFailsStopsNothing) {
    std::ostringstream out;
    out.setstate(std::ios::badbit);
    Screen screen(out);
    ConsoleReporter console(screen, {1});
    EXPECT_NO_THROW(console.step(sample_step()));
}

}  // namespace
}  // namespace vpp
