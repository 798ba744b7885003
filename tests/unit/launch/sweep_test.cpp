#include "launch/sweep.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace vpp {
namespace {

using Texts = std::vector<std::string>;

/// Plays a sweep of three runs and notes what it does.
struct SweepScene {
    std::map<size_t, SweepJobEnd> ends;  ///< 0 where nothing stands
    std::set<size_t> finished;
    size_t stop_before = 99;

    SweepEnd sweep() {
        SweepHooks hooks;
        hooks.is_finished = [this](size_t run) { return finished.contains(run); };
        hooks.run = [this](size_t run) {
            started.push_back(run);
            return ends[run];
        };
        hooks.is_stop_asked = [this] { return started.size() == stop_before; };
        hooks.say = [this](const std::string& text) { said.push_back(text); };
        return run_sweep({"a", "b", "c"}, hooks);
    }

    std::vector<size_t> started;
    Texts said;
};

using Runs = std::vector<size_t>;

TEST(Sweep, RunsAllInTheirOrder) {
    SweepScene stage;
    EXPECT_EQ(stage.sweep().code, 0);
    EXPECT_EQ(stage.started, (Runs{0, 1, 2}));
    EXPECT_EQ(stage.said, (Texts{"1 of 3, a", "2 of 3, b", "3 of 3, c"}));
}

TEST(Sweep, PassesOverWhatIsFinished) {
    SweepScene stage;
    stage.finished = {0, 2};
    EXPECT_EQ(stage.sweep().code, 0);
    EXPECT_EQ(stage.started, Runs{1});
    EXPECT_EQ(stage.said[0], "1 of 3, a: finished before");
}

TEST(Sweep, AFailureKeepsNoOtherFromRunningAndIsTheCode) {
    SweepScene stage;
    stage.ends = {{0, {79, false}}, {1, {78, false}}};
    const SweepEnd end = stage.sweep();
    EXPECT_EQ(end.code, 79);
    EXPECT_EQ(stage.started, (Runs{0, 1, 2}));
    EXPECT_EQ(end.states, (Texts{"failed with 79", "failed with 78", ""}));
}

TEST(Sweep, AWrongCommandLineEndsAll) {
    SweepScene stage;
    stage.ends = {{0, {2, false}}};
    EXPECT_EQ(stage.sweep().code, 2);
    EXPECT_EQ(stage.started, Runs{0});
}

TEST(Sweep, ASignalEndsAll) {
    for (const int code : {85, 130}) {
        SweepScene stage;
        stage.ends = {{0, {79, false}}, {1, {code, true}}};
        const SweepEnd end = stage.sweep();
        EXPECT_EQ(end.code, code);
        EXPECT_EQ(stage.started, (Runs{0, 1}));
        EXPECT_EQ(end.states, (Texts{"failed with 79", "", ""}));
        EXPECT_EQ(stage.said.back(), "stopped as asked by a signal; the same command goes on from there");
    }
}

TEST(Sweep, ASignalThatComesAsAJobEndsStartsNoOther) {
    SweepScene stage;
    stage.ends = {{0, {0, true}}};
    EXPECT_EQ(stage.sweep().code, 85);
    EXPECT_EQ(stage.started, Runs{0});
    SweepScene last;
    last.ends = {{2, {0, true}}};
    EXPECT_EQ(last.sweep().code, 0);  // nothing is left to do
}

TEST(Sweep, ASignalBetweenTwoJobsStartsNoOther) {
    SweepScene stage;
    stage.stop_before = 1;
    EXPECT_EQ(stage.sweep().code, 85);
    EXPECT_EQ(stage.started, Runs{0});
    SweepScene done;
    done.stop_before = 0;
    done.finished = {0, 1, 2};
    EXPECT_EQ(done.sweep().code, 0);
}

}  // namespace
}  // namespace vpp
