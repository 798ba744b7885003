#include "engine/train.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/elapsed.hpp"
#include "checkpoint/folder_names.hpp"
#include "unit/engine/support.hpp"

namespace vpp::test {
namespace {

namespace fs = std::filesystem;

/// Notes what it is told, as one text.
class RecordingReporter : public Reporter {
  public:
    void step(const StepEvent& event) override {
        steps.push_back(event);
        text += "step " + std::to_string(event.step) + "/" + std::to_string(event.total_steps) + "\n";
    }
    void evaluation(const EvalEvent& event) override { text += "evaluation " + std::to_string(event.step) + "\n"; }
    void saved(const SaveEvent& event) override {
        text += "saved " + std::to_string(event.step) + "\n";
        EXPECT_GT(event.pause_seconds, 0);
        EXPECT_GT(event.size_bytes, 0);
        EXPECT_TRUE(std::filesystem::exists(event.folder));
    }
    void memory(const MemoryEvent& event) override { text += "memory " + std::to_string(event.step) + "\n"; }
    std::string text;
    std::vector<StepEvent> steps;
};

class Training : public ::testing::Test {
  protected:
    /// Saves are waited for, so that the order of events is fixed; a later setting may change that.
    Rig open(std::vector<std::string> set) {
        set.insert(set.begin(), "checkpoint.background=false");
        return set_up(plan_with_validation(folder_, model_, 7), set);
    }

    TrainResult run(Rig& setup) {
        TrainResult result;
        reporter_ = {};
        final_.clear();
        with_engines(setup, setup.prepared.program, [&](Engine& engine) {
            TrainOptions options;
            const bool first = engine.transport().rank() == 0;
            if (first) options.reporter = &reporter_;
            options.log = log_.log;
            options.resumed = [&, first](int64_t step) {
                resumed_ = step;
                if (first) deadline_seconds_ = engine.transport().deadline_seconds();
            };
            options.stop_point = disk_;
            options.retry_pause_seconds = retry_pause_seconds_;
            options.profile = profile_;
            const int rank = engine.transport().rank();
            options.stop_request = [this, rank] { return ++asked_[rank] == stop_at_ && rank == 1; };
            const TrainResult own = train(engine, setup.plan, setup.prepared.program, options);
            if (first) result = own;
            const auto state = digests(engine.state());
            final_.insert(state.begin(), state.end());
        });
        return result;
    }

    std::string model_ = "dropout";
    TemporaryFolder folder_;
    RecordingReporter reporter_;
    std::map<std::string, std::string> final_;
    int64_t resumed_ = -1;
    double deadline_seconds_ = 0;  ///< while the run folder is made this run's
    StopHook disk_;
    double retry_pause_seconds_ = 0;
    std::optional<ProfileRequest> profile_;
    TextLog log_;
    int stop_at_ = 0;                                   ///< rank 1 is told to stop when it looks for the n-th time
    std::map<int, int> asked_{{0, 0}, {1, 0}, {2, 0}};  ///< by rank
};

TEST_F(Training, stepsEvaluatesSavesAndReportsWhenDue) {
    Rig setup = open({"train.eval_every=2", "checkpoint.every=3", "mesh.pp=2"});
    const TrainResult result = run(setup);
    EXPECT_EQ(reporter_.text,
              "evaluation 0\nstep 1/4\nstep 2/4\nmemory 2\nevaluation 2\nstep 3/4\nsaved 3\nstep 4/4\n"
              "evaluation 4\nsaved 4\n");
    EXPECT_EQ(result.first_step, 0);
    EXPECT_EQ(result.last_step, 4);
    EXPECT_EQ(result.checkpoint.filename(), "step-00000004");
    EXPECT_EQ(resumed_, 0);
    const StepEvent& event = reporter_.steps.at(1);
    EXPECT_EQ(event.microbatch_losses.size(), 3u);
    EXPECT_GT(event.samples_per_second, 0);
    EXPECT_GT(event.flops, 0);
    EXPECT_EQ(event.tokens_per_second, 0) << "the data are no tokens";
    EXPECT_GE(event.eta_seconds, 0);
    ASSERT_TRUE(event.bubble_mean && event.bubble_worst);
    EXPECT_LE(*event.bubble_mean, *event.bubble_worst);
}

TEST_F(Training, stopsOnAllRanksWhenOneIsAskedAndGoesOnWithTheSameBits) {
    Rig unbroken = open({"run.dir=\"" + folder_.path("unbroken") + "\"", "mesh.pp=2"});
    run(unbroken);
    const auto expected = final_;
    Rig setup = open({"mesh.pp=2", "train.eval_every=1"});
    // It looks after loading, after each group of the evaluation (two), after the step.
    struct Stop {
        int looks;
        int64_t step;
        const char* text;
    };
    for (const Stop& stop : {Stop{1, 0, ""}, Stop{2, 0, ""}, Stop{4, 1, "evaluation 0\nstep 1/4\nsaved 1\n"}}) {
        stop_at_ = stop.looks;
        asked_ = {{0, 0}, {1, 0}, {2, 0}};
        const TrainResult result = run(setup);
        EXPECT_TRUE(result.stopped);
        EXPECT_EQ(result.last_step, stop.step);
        EXPECT_EQ(result.checkpoint.empty(), stop.step == 0);
        EXPECT_EQ(reporter_.text, stop.text);
    }
    stop_at_ = 0;
    EXPECT_FALSE(run(setup).stopped);
    EXPECT_EQ(resumed_, 1);
    EXPECT_EQ(final_, expected);
}

TEST_F(Training, aFullDiskIsSaidAndTheNextSaveGoesOn) {
    Rig setup = open({"mesh.pp=2", "checkpoint.every=1"});
    int fails = 2;
    disk_ = [&](std::string_view point) {
        if (point == "manifest.written" && fails-- > 0) throw Error(ErrorKind::Io, "no space left");
    };
    EXPECT_EQ(run(setup).checkpoint.filename(), "step-00000004");
    EXPECT_EQ(reporter_.text, "step 1/4\nstep 2/4\nmemory 2\nstep 3/4\nsaved 3\nstep 4/4\nsaved 4\n");
    const fs::path folder = fs::path(setup.plan.run.dir) / "checkpoints";
    EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 2) << "a failed save leaves nothing";
}

TEST_F(Training, aSaveThatFailsWhileItIsAskedToStopIsTriedAgain) {
    Rig setup = open({"mesh.pp=2", "checkpoint.every=1"});
    int saves = 0;
    disk_ = [&](std::string_view point) {
        if (point == "manifest.written" && ++saves == 2) throw Error(ErrorKind::Io, "no space left");
    };
    stop_at_ = 5;  // after loading, the step, its save, the step, and its save, which fails
    const TrainResult result = run(setup);
    EXPECT_TRUE(result.stopped);
    EXPECT_EQ(result.last_step, 2);
    EXPECT_EQ(result.checkpoint.filename(), "step-00000002");
    EXPECT_EQ(reporter_.text, "step 1/4\nsaved 1\nstep 2/4\nmemory 2\nsaved 2\n");
    EXPECT_HAS(log_.text.str(), "the save of step 2 failed (no space left)");
}

TEST_F(Training, whatDeadSavesLeftIsRemovedBeforeRoomIsLookedAt) {
    Rig setup = open({"mesh.pp=2"});
    const fs::path left = fs::path(setup.plan.run.dir) / "checkpoints" / temporary_folder_name(9, "dead");
    fs::create_directories(left);
    stop_at_ = 1;  // before any save would remove it
    EXPECT_EQ(run(setup).last_step, 0);
    EXPECT_FALSE(fs::exists(left));
}

TEST_F(Training, othersWaitLongerForWhoClearsAwayMuch) {
    Rig setup = open({"mesh.pp=2"});
    const fs::path left = fs::path(setup.plan.run.dir) / "checkpoints" / temporary_folder_name(9, "dead");
    fs::create_directories(left);
    { const std::ofstream shard(left / "shard-00000.safetensors"); }
    fs::resize_file(left / "shard-00000.safetensors", 10'000'000'000);
    stop_at_ = 1;
    EXPECT_EQ(run(setup).last_step, 0);
    EXPECT_FALSE(fs::exists(left));
    EXPECT_EQ(deadline_seconds_, 1300) << "300 s, and 10 MB a second";
}

TEST_F(Training, othersWaitLongerForWhoCutsLongMetrics) {
    Rig setup = open({"mesh.pp=2"});
    fs::create_directories(setup.plan.run.dir);
    for (const char* name : {"metrics.jsonl", "metrics.csv"}) {
        const fs::path file = fs::path(setup.plan.run.dir) / name;
        { const std::ofstream made(file); }
        fs::resize_file(file, 5'000'000'000);
    }
    stop_at_ = 1;
    EXPECT_EQ(run(setup).last_step, 0);
    EXPECT_EQ(deadline_seconds_, 1300);
}

TEST_F(Training, aFullDiskThatStaysEndsTheJobAndLeavesTheLastSave) {
    Rig setup = open({"mesh.pp=2", "checkpoint.every=1", "checkpoint.max_failures=2"});
    int saves = 0;
    disk_ = [&](std::string_view point) {
        if (point == "manifest.written" && ++saves > 1) throw Error(ErrorKind::Io, "no space left");
    };
    const std::string text = error_of(ErrorKind::Io, [&] { run(setup); });
    EXPECT_HAS(text, "the save of step 3 failed (no space left)");
    EXPECT_HAS(text, "2 saves in a row failed");
    EXPECT_EQ(reporter_.text, "step 1/4\nsaved 1\nstep 2/4\nmemory 2\nstep 3/4\n");
    const auto left = CheckpointStore(setup.plan.run.dir).list();
    ASSERT_EQ(left.size(), 1u);
    EXPECT_NO_THROW(CheckpointReader(left[0]).verify());
}

TEST_F(Training, theLastSaveIsTriedAgainWhenTheDiskHasHadTime) {
    Rig setup = open({"mesh.pp=2"});
    retry_pause_seconds_ = 0.2;
    std::vector<Clock::time_point> tries;
    disk_ = [&](std::string_view point) {
        if (point != "manifest.written") return;
        tries.push_back(Clock::now());
        if (tries.size() < 3) throw Error(ErrorKind::Io, "no space left");
    };
    EXPECT_EQ(run(setup).checkpoint.filename(), "step-00000004");
    ASSERT_EQ(tries.size(), 3u);
    EXPECT_GE(std::chrono::duration<double>(tries[1] - tries[0]).count(), 0.2);
    EXPECT_GE(std::chrono::duration<double>(tries[2] - tries[1]).count(), 0.4) << "longer each time";
}

TEST_F(Training, anOldCheckpointThatCannotBeDeletedStaysAndIsSaid) {
    Rig setup = open({"checkpoint.every=1", "checkpoint.keep=1"});
    disk_ = [&](std::string_view point) {
        if (point == "discard.renamed") throw Error(ErrorKind::Io, "no space left");
    };
    run(setup);
    EXPECT_HAS(log_.text.str(), "older checkpoints stay: no space left");
}

TEST_F(Training, whatIsLaterThanTheCheckpointThatItGoesOnFromIsSetAside) {
    Rig setup = open({"checkpoint.every=2", "checkpoint.keep=9"});
    run(setup);
    const fs::path checkpoints = fs::path(setup.plan.run.dir) / "checkpoints";
    fs::resize_file(checkpoints / "step-00000004" / "shard-00000.safetensors", 100);
    run(setup);
    EXPECT_HAS(log_.text.str(), "a checkpoint of a later step than the one this run goes on from is now " +
                                    (fs::path(setup.plan.run.dir) / "set-aside" / "step-00000004").string());
}

TEST_F(Training, whereItGoesOnFromAnotherRunAllCheckpointsAreSetAside) {
    Rig setup = open({"checkpoint.every=2", "checkpoint.keep=9"});
    const fs::path first = setup.plan.run.dir, second = first.string() + "-2";
    run(setup);
    setup.plan.run.dir = second.string();
    run(setup);
    setup.plan.checkpoint.resume = (second / "checkpoints" / "step-00000004").string();
    run(setup);
    EXPECT_FALSE(fs::exists(second / "set-aside")) << "its own";
    setup.plan.checkpoint.resume = (first / "checkpoints" / "step-00000002").string();
    run(setup);
    for (const char* name : {"step-00000002", "step-00000004"}) {
        EXPECT_HAS(log_.text.str(), "a checkpoint of another run than the one this run goes on from is now " +
                                        (second / "set-aside" / name).string());
    }
}

TEST_F(Training, whereNoStepIsLeftBehindANamedCheckpointTheRunFolderStaysAsItIs) {
    Rig setup = open({"checkpoint.every=2", "checkpoint.keep=9"});
    const fs::path first = setup.plan.run.dir, second = first.string() + "-2";
    run(setup);
    setup.plan.run.dir = second.string();
    run(setup);
    Rig shorter = open({"train.steps=2"});
    shorter.plan.run.dir = second.string();
    resumed_ = 99;
    setup.plan.checkpoint.resume = (first / "checkpoints" / "step-00000004").string();
    EXPECT_EQ(run(setup).first_step, 4);
    shorter.plan.checkpoint.resume = (second / "checkpoints" / "step-00000002").string();
    EXPECT_EQ(run(shorter).first_step, 2);
    EXPECT_EQ(resumed_, 99) << "nothing is cut off what the run folder tells";
    EXPECT_FALSE(fs::exists(second / "set-aside"));
    EXPECT_EQ(CheckpointStore(second).list().size(), 2u);
}

TEST_F(Training, roomForAllThatIsKeptIsLookedAt) {
    Rig setup = open({"checkpoint.every=4"});
    fs::create_directories(setup.plan.run.dir);
    setup.plan.checkpoint.keep = 1'000'000'000;  // more than a plan may say, so that any disk is too small
    run(setup);
    EXPECT_HAS(log_.text.str(), " free; checkpoint.keep asks for room for 1000000001 more");
}

TEST_F(Training, aSaveInTheBackgroundHasTheStateOfItsStep) {
    Rig waits = open({"mesh.pp=2", "checkpoint.every=1", "checkpoint.keep=9"});
    run(waits);
    Rig goes_on = open({"mesh.pp=2", "checkpoint.every=1", "checkpoint.keep=9", "checkpoint.background=true",
                        "run.dir=\"" + folder_.path("background") + "\""});
    disk_ = [&](std::string_view point) {  // slow enough for the next step to change the weights meanwhile
        if (point == "shard.header_written") std::this_thread::sleep_for(std::chrono::milliseconds(30));
    };
    run(goes_on);
    const auto one = CheckpointStore(waits.plan.run.dir).list(), other = CheckpointStore(goes_on.plan.run.dir).list();
    ASSERT_EQ(one.size(), 4u);
    ASSERT_EQ(other.size(), 4u);
    for (size_t i = 0; i < one.size(); ++i) {
        const CheckpointReader expected(one[i]), got(other[i]);
        got.verify();
        EXPECT_EQ(got.names(), expected.names());
        for (const std::string& name : expected.names()) {
            EXPECT_TRUE(std::ranges::equal(got.tensor(name).bytes, expected.tensor(name).bytes)) << name;
        }
    }
}

TEST_F(Training, aBackgroundSaveThatFailsIsSaidLaterAndTooManyEndTheJob) {
    Rig setup = open({"mesh.pp=2", "checkpoint.every=1", "checkpoint.background=true", "checkpoint.max_failures=2"});
    disk_ = [&](std::string_view point) {
        if (point == "shard.header_written") throw Error(ErrorKind::Io, "no space left");
    };
    EXPECT_HAS(error_of(ErrorKind::Io, [&] { run(setup); }), "the save of step 2 failed (no space left)");
    EXPECT_HAS(log_.text.str(),
               "the save of step 1 failed (no space left); the checkpoints before it are as they were");
    EXPECT_TRUE(CheckpointStore(setup.plan.run.dir).list().empty());
}

TEST_F(Training, aDiskThatDoesNotAnswerIsNamed) {
    Rig setup = open({"mesh.pp=2", "checkpoint.every=1", "checkpoint.background=true", "run.deadline_floor_s=0.2"});
    disk_ = [&](std::string_view point) {
        if (point == "shard.header_written") std::this_thread::sleep_for(std::chrono::milliseconds(600));
    };
    EXPECT_HAS(error_of(ErrorKind::RankLost, [&] { run(setup); }), "does not answer: this rank has waited");
    std::this_thread::sleep_for(std::chrono::milliseconds(600));  // the threads that were left end
}

TEST_F(Training, savesByTimeToo) {
    Rig setup = open({"mesh.pp=2", "checkpoint.every_minutes=1e-9"});
    run(setup);
    EXPECT_HAS(reporter_.text, "step 2/4\nmemory 2\nsaved 2\n");
    Rig never = open({"mesh.pp=2", "checkpoint.every_minutes=1000", "run.dir=\"" + folder_.path("never") + "\""});
    run(never);
    EXPECT_EQ(reporter_.text, "step 1/4\nstep 2/4\nmemory 2\nstep 3/4\nstep 4/4\nsaved 4\n");
}

TEST_F(Training, whatStaysForEverIsSavedToo) {
    Rig setup = open({"checkpoint.every=2", "checkpoint.keep=1", "checkpoint.keep_every=3"});
    run(setup);
    EXPECT_EQ(reporter_.text, "step 1/4\nstep 2/4\nmemory 2\nsaved 2\nstep 3/4\nsaved 3\nstep 4/4\nsaved 4\n");
    const auto left = CheckpointStore(setup.plan.run.dir).list();
    ASSERT_EQ(left.size(), 2u);
    EXPECT_EQ(left[1].filename(), "step-00000003");
}

TEST_F(Training, aBufferThatStepsHaveDamagedIsToldOnce) {
    model_ = "always_trains";
    Rig setup = open({"checkpoint.every=1", "checkpoint.keep=9"});
    with_engines(setup, setup.prepared.program, [&](Engine& engine) {
        EXPECT_EQ(engine.find_damaged_buffer(), std::nullopt) << "nothing is known before the first step";
        engine.run_step(0);
        EXPECT_EQ(engine.find_damaged_buffer(), std::nullopt);
        for (const StateTensor& entry : engine.tensors()) {
            if (entry.name == "buffer running_var1") entry.tensor.fill_(INFINITY);
        }
        EXPECT_EQ(engine.find_damaged_buffer(), "running_var1");
        TrainOptions options;
        options.log = log_.log;
        train(engine, setup.plan, setup.prepared.program, options);
    });
    const std::string told = "has made the buffer 'running_var1' not finite, by which evaluation goes; it is saved";
    const std::string text = log_.text.str();
    EXPECT_HAS(text, told);
    EXPECT_EQ(text.find(told, text.find(told) + 1), std::string::npos);
}

TEST_F(Training, theBestCheckpointStays) {
    Rig setup = open({"checkpoint.every=1", "checkpoint.keep=1", "checkpoint.keep_best=1", "train.eval_every=1",
                      "optimizer.lr=0", "optimizer.weight_decay=0"});
    run(setup);  // the loss stays as it is: of equals the first is the best
    const auto left = CheckpointStore(setup.plan.run.dir).list();
    ASSERT_EQ(left.size(), 2u);
    EXPECT_EQ(left[0].filename(), "step-00000004");
    EXPECT_EQ(left[1].filename(), "step-00000001");
    EXPECT_TRUE(CheckpointReader(left[1]).manifest().state.facts.contains(kValidationLoss));
}

TEST_F(Training, aSkippedStepIsSaidAndTheRunGoesOn) {
    model_ = "overflows";
    Rig setup = open(
        {"optimizer.kind=\"sgd\"", "optimizer.lr=1e25", "optimizer.weight_decay=0", "train.on_nonfinite=\"skip\""});
    EXPECT_EQ(run(setup).last_step, 4);
    EXPECT_HAS(log_.text.str(), "step 2: the loss is");
    EXPECT_HAS(log_.text.str(), "; the step was skipped");
    EXPECT_FALSE(reporter_.steps.at(0).skipped);
    EXPECT_TRUE(reporter_.steps.at(3).skipped);
}

TEST_F(Training, evaluatingEveryStepChangesNoBit) {
    Rig never = open({"run.dir=\"" + folder_.path("never") + "\""});
    run(never);
    const auto expected = final_;
    Rig always = open({"train.eval_every=1", "run.dir=\"" + folder_.path("always") + "\""});
    run(always);
    EXPECT_EQ(final_, expected);
    EXPECT_HAS(reporter_.text, "evaluation 3");
}

TEST_F(Training, goesOnFromTheNewestCheckpointWithTheSameBits) {
    Rig unbroken = open({"run.dir=\"" + folder_.path("unbroken") + "\""});
    run(unbroken);
    const auto expected = final_;
    Rig begin = open({"train.steps=2", "mesh.pp=2"}), end = open({"mesh.pp=3", "train.eval_every=1"});
    run(begin);
    const TrainResult result = run(end);
    EXPECT_EQ(result.first_step, 2);
    EXPECT_EQ(resumed_, 2);
    EXPECT_EQ(final_, expected);
    EXPECT_EQ(reporter_.text,
              "evaluation 2\nsaved 2\nstep 3/4\nevaluation 3\nstep 4/4\nmemory 4\nevaluation 4\nsaved 4\n")
        << "no evaluation 0";
}

TEST_F(Training, anEvaluationThatAStopHasCutShortIsMadeUpFor) {
    Rig setup = open({"mesh.pp=2", "train.eval_every=2"});
    const std::string rest = "step 3/4\nstep 4/4\nmemory 4\nevaluation 4\nsaved 4\n";
    // It looks after loading, in evaluation 0 (two groups), after two steps, in evaluation 2.
    for (int looks : {5, 6}) {
        fs::remove_all(setup.plan.run.dir);
        stop_at_ = looks;
        asked_ = {{0, 0}, {1, 0}, {2, 0}};
        EXPECT_EQ(run(setup).last_step, 2);
        EXPECT_EQ(reporter_.text, "evaluation 0\nstep 1/4\nstep 2/4\nmemory 2\nsaved 2\n");
        stop_at_ = 0;
        run(setup);
        EXPECT_EQ(reporter_.text, "evaluation 2\nsaved 2\n" + rest) << looks;
        const auto facts = CheckpointReader(CheckpointStore(setup.plan.run.dir).place_of(2)).manifest().state.facts;
        EXPECT_TRUE(facts.contains(kValidationLoss)) << "so that no later start makes up for it again";
    }
}

TEST_F(Training, anEvaluationOfTheLastStepIsMadeUpForOnce) {
    Rig setup = open({"mesh.pp=2", "train.eval_every=3", "train.steps=2"});
    stop_at_ = 6;
    EXPECT_EQ(run(setup).last_step, 2);
    EXPECT_EQ(reporter_.text, "evaluation 0\nstep 1/2\nstep 2/2\nmemory 2\nsaved 2\n");
    stop_at_ = 0;
    run(setup);
    EXPECT_EQ(reporter_.text, "evaluation 2\nsaved 2\n");
    run(setup);
    EXPECT_EQ(reporter_.text, "");
}

TEST_F(Training, whereMoreStepsAreDoneThanThePlanHasNothingIsProfiledOrEvaluated) {
    Rig setup = open({"mesh.pp=2"});
    run(setup);
    Rig shorter = open({"mesh.pp=2", "train.steps=2", "train.eval_every=1"});
    profile_ = ProfileRequest{{.first = 0, .last = 2}, {}};
    const TrainResult result = run(shorter);
    EXPECT_EQ(result.first_step, 4);
    EXPECT_EQ(reporter_.text, "");
}

TEST_F(Training, theLossScaleGoesOnFromTheCheckpoint) {
    model_ = "mlp";
    const std::vector<std::string> fp16{"train.precision=\"fp16\"", "train.loss_scale=4096",
                                        "train.loss_scale_every=3"};
    const auto open_fp16 = [&](std::vector<std::string> set) {
        set.insert(set.end(), fp16.begin(), fp16.end());
        return open(set);
    };
    Rig unbroken = open_fp16({"run.dir=\"" + folder_.path("unbroken") + "\""});
    run(unbroken);
    const auto expected = final_;
    EXPECT_EQ(reporter_.steps.at(2).loss_scale, 4096);
    EXPECT_EQ(reporter_.steps.at(3).loss_scale, 8192);
    Rig begin = open_fp16({"train.steps=2", "mesh.pp=2"}), end = open_fp16({"mesh.pp=3"});
    run(begin);
    run(end);
    EXPECT_EQ(final_, expected);
    EXPECT_EQ(reporter_.steps.at(0).loss_scale, 4096);
    EXPECT_EQ(reporter_.steps.at(1).loss_scale, 8192) << "two of the three steps were before";
}

TEST_F(Training, theLossesOfTheGuardGoOnFromTheCheckpoint) {
    model_ = "mlp";
    const auto open_guarded = [&](std::vector<std::string> set) {
        set.emplace_back("train.on_spike=\"warn\"");
        return open(set);
    };
    const auto memory_behind = [](const Rig& rig) {
        const fs::path newest = CheckpointStore(rig.plan.run.dir).list().front();
        return CheckpointReader(newest).manifest().state.facts.at("step_guard");
    };
    Rig unbroken = open_guarded({"run.dir=\"" + folder_.path("unbroken") + "\""});
    run(unbroken);
    Rig begin = open_guarded({"train.steps=2"}), end = open_guarded({});
    run(begin);
    run(end);
    EXPECT_EQ(memory_behind(end), memory_behind(unbroken));
}

TEST_F(Training, clearsAwayWhatTheLastSaveLeftWhenAllStepsAreDone) {
    Rig setup = open({"checkpoint.every=1", "checkpoint.keep=3"});
    run(setup);
    const fs::path folder = CheckpointStore(setup.plan.run.dir).list().front().parent_path();
    fs::create_directory(folder / trash_folder_name("step-00000003"));
    setup.plan.checkpoint.keep = 1;
    run(setup);
    const std::vector<fs::path> left(fs::directory_iterator(folder), {});
    ASSERT_EQ(left.size(), 1u);
    EXPECT_EQ(left[0].filename(), "step-00000004");
}

TEST_F(Training, hasNothingToDoWhenAllStepsAreDone) {
    Rig setup = open({});
    run(setup);
    const TrainResult again = run(setup);
    EXPECT_EQ(again.first_step, 4);
    EXPECT_EQ(again.last_step, 4);
    EXPECT_TRUE(again.checkpoint.empty());
    EXPECT_EQ(reporter_.text, "");
}

TEST_F(Training, leavesTheLastSaveWhenTheLossIsNotFinite) {
    model_ = "overflows";
    Rig setup = open({"optimizer.kind=\"sgd\"", "optimizer.lr=1e25", "optimizer.weight_decay=0", "checkpoint.every=1"});
    error_of(ErrorKind::NotFinite, [&] { run(setup); });
    EXPECT_EQ(reporter_.text, "step 1/4\nsaved 1\n");
    const auto left = CheckpointStore(setup.plan.run.dir).list();
    ASSERT_EQ(left.size(), 1u);
    EXPECT_NO_THROW(CheckpointReader(left[0]).verify());
}

}  // namespace
}  // namespace vpp::test
