#include "engine/profiler.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "comm/in_process.hpp"
#include "schedule/edges.hpp"
#include "schedule/generators.hpp"
#include "schedule/lowering.hpp"
#include "unit/data/support.hpp"

namespace vpp::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

Program two_ranks() {
    Program program;
    program.mesh.pp = 2;
    program.training.schedule = lower(make_schedule("1F1B", 2, 1, 2), chain_edges(2));
    return program;
}

constexpr int64_t kActionNanoseconds = 100'000;

/// One action behind the other; the card of rank 1 does each half an action later.
std::vector<ActionSpan> actions(const Program& program, int rank, int64_t begin) {
    std::vector<ActionSpan> spans;
    for (size_t i = 0; i < program.training.schedule.actions[static_cast<size_t>(rank)].size(); ++i) {
        const int64_t end = begin + kActionNanoseconds, half = kActionNanoseconds / 2;
        ActionSpan& span = spans.emplace_back(ActionSpan{begin, end});
        if (rank == 1) span.device_begin = begin + half, span.device_end = end + half;
        begin = end;
    }
    return spans;
}

class Profiling : public ::testing::Test {
  protected:
    /// Steps 1 to `num_steps` on two ranks, which begin at one time and take as long however busy the machine is.
    void run(StepRange steps, int64_t num_steps) {
        const Program program = two_ranks();
        const int64_t start = steady_nanoseconds();
        InProcessWorld({.num_ranks = 2}).run([&](Transport& transport) {
            Profiler profiler(transport, program, folder(), steps, logger_,
                              [this](const std::string& drawing) { shown_.push_back(drawing); });
            for (int64_t step = 1; step <= num_steps; ++step) {
                profiler.before(step);
                const int64_t begin = start + 12 * kActionNanoseconds * step;
                const auto spans = actions(program, transport.rank(), begin);
                profiler.after(step,
                               {begin, begin + 8 * kActionNanoseconds, begin + 9 * kActionNanoseconds,
                                begin + 10 * kActionNanoseconds},
                               spans, {{begin, begin + kActionNanoseconds, step, 1, 0}});
            }
            profiler.finish();
        });
    }
    fs::path folder() const { return folder_.path("profile"); }
    std::set<std::string> files() const {
        std::set<std::string> names;
        if (!fs::exists(folder())) return names;
        for (const auto& entry : fs::directory_iterator(folder())) names.insert(entry.path().filename());
        return names;
    }
    json read(const std::string& name) const {
        std::ifstream file(folder() / name);
        return json::parse(file);
    }

    TemporaryFolder folder_;
    std::ostringstream log_;
    Logger logger_ = make_stream_logger(log_);
    std::vector<std::string> shown_;
};

TEST_F(Profiling, EveryStepIsATraceAndOneIsDrawn) {
    run({2, 4}, 6);
    EXPECT_EQ(files(),
              (std::set<std::string>{"timeline.json", "trace-step2.json", "trace-step3.json", "trace-step4.json"}));
    ASSERT_EQ(shown_.size(), 1U);
    EXPECT_EQ(shown_[0].substr(0, 3), "0 |");
    EXPECT_NE(shown_[0].find("F0"), std::string::npos) << shown_[0];
    EXPECT_NE(log_.str().find("profiled 3 steps"), std::string::npos) << log_.str();
    EXPECT_NE(log_.str().find("agree within"), std::string::npos) << log_.str();
    const json trace = read("trace-step3.json");
    EXPECT_EQ(trace.at("otherData").at("step"), 3);
    EXPECT_GT(trace.at("otherData").at("clock_error_ms"), 0);
    std::map<std::string, double> host, card;  // rank 1, by name
    for (const json& event : trace.at("traceEvents")) {
        if (event.at("ph") != "X" || event.at("pid") != 1) continue;
        (event.at("cat") == "card" ? card : host)[event.at("name")] = event.at("ts");
    }
    EXPECT_EQ(card.size(), 8U);
    for (const auto& [name, microseconds] : card) EXPECT_NEAR(microseconds - host.at(name), 50, 10) << name;
    const json timeline = read("timeline.json");
    EXPECT_EQ(timeline.at("actions").size(), 16U) << "F and B of two microbatches, and a transfer beside each";
    std::map<int, int> by_rank;
    for (const json& action : timeline.at("actions")) {
        ++by_rank[action.at("rank")];
        // The rate of the other rank's clock is an estimate, which is poor over so short a time.
        EXPECT_NEAR(action.at("end_ms").get<double>() - action.at("begin_ms").get<double>(), 0.1, 0.02);
    }
    EXPECT_EQ(by_rank, (std::map<int, int>{{0, 8}, {1, 8}}));
}

TEST_F(Profiling, ATrainingThatEndsBeforeWritesWhatThereIs) {
    run({2, 100}, 3);
    EXPECT_EQ(files(), (std::set<std::string>{"timeline.json", "trace-step2.json", "trace-step3.json"}));
}

TEST_F(Profiling, StepsThatNeverCameWriteNothing) {
    run({10, 12}, 3);
    EXPECT_TRUE(files().empty());
    EXPECT_TRUE(shown_.empty() && log_.str().empty());
}

TEST_F(Profiling, WhatCannotBeWrittenEndsNoTraining) {
    std::ofstream(folder()) << "a file where the folder should be";
    run({1, 1}, 2);
    EXPECT_NE(log_.str().find("the profile could not be written"), std::string::npos) << log_.str();
}

}  // namespace
}  // namespace vpp::test
