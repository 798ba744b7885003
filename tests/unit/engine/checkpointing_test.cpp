#include "engine/checkpointing.hpp"

#include <filesystem>
#include <fstream>

#include "checkpoint/manifest.hpp"
#include "engine/saver.hpp"
#include "unit/engine/support.hpp"

namespace vpp::test {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kTrainedSteps = 5;

/// A training in pieces: every piece is a job of its own that may be laid out in another way.
class Checkpointing : public ::testing::Test {
  protected:
    Rig open(std::vector<std::string> set = {}) {
        set.push_back("run.dir=\"" + folder_.path("run") + "\"");
        return set_up_tiny(model_, folder_.path("."), set);
    }

    /// Resumes from what is there, runs up to `last` and saves after the steps in `saves`; the step it began with.
    int64_t run(Rig& setup, int64_t last, const std::vector<int64_t>& saves) {
        int64_t first = 0;
        CheckpointStore store(folder_.path("run"));
        with_engines(setup, setup.prepared.program, [&](Engine& engine) {
            const Program& program = setup.prepared.program;
            const auto state = resume_checkpoint(engine, setup.plan, program, store, log_.log);
            const int64_t step = state ? state->step : 0;
            if (engine.transport().rank() == 0) first = step;
            for (int64_t done = step; done < last; ++done) {
                engine.run_step(done);
                if (std::find(saves.begin(), saves.end(), done + 1) == saves.end()) continue;
                save_checkpoint(engine, setup.plan, program, done + 1);
            }
            const auto own = digests(engine.tensors());
            final_.insert(own.begin(), own.end());
        });
        return first;
    }

    std::map<std::string, std::string> unbroken() {
        Rig setup = open();
        std::map<std::string, std::string> result;
        with_engines(setup, setup.prepared.program, [&](Engine& engine) {
            for (int64_t step = 0; step < kTrainedSteps; ++step) engine.run_step(step);
            result = digests(engine.tensors());
        });
        return result;
    }

    std::map<std::string, std::string> run_and_take(Rig& setup, int64_t last, const std::vector<int64_t>& saves) {
        final_.clear();
        run(setup, last, saves);
        return final_;
    }

    std::string checkpoint(int64_t step) const {
        const std::string digits = std::to_string(step);
        return folder_.path("run/checkpoints/step-" + std::string(8 - digits.size(), '0') + digits);
    }

    std::string model_ = "bn_cnn";
    TemporaryFolder folder_;
    TextLog log_;
    std::map<std::string, std::string> final_;
};

TEST_F(Checkpointing, aResumedRunHasTheBitsOfTheUnbrokenOneInAnyLayout) {
    const std::vector<std::vector<std::string>> layouts{
        {},
        {"mesh.pp=2", "pipeline.schedule_type=\"GPIPE\""},
        {"mesh.pp=3", "pipeline.split_method=\"PARAMETERS\""},
        {"mesh.pp=2", "pipeline.virtual_chunks=2", "pipeline.schedule_type=\"INTERLEAVED_1F1B\""}};
    for (const char* model : {"bn_cnn", "dropout"}) {
        model_ = model;
        const auto expected = unbroken();
        for (size_t i = 0; i < layouts.size(); ++i) {
            fs::remove_all(folder_.path("run"));
            Rig first = open(layouts[i]), second = open(layouts[(i + 1) % layouts.size()]);
            EXPECT_EQ(run(first, 2, {2}), 0);
            EXPECT_EQ(run_and_take(second, kTrainedSteps, {}), expected) << model << ", layout " << i;
            EXPECT_EQ(run(second, 2, {}), 2) << "it began behind the checkpoint";
        }
    }
}

TEST_F(Checkpointing, aParameterWithoutAGradientHasNoStateToResume) {
    model_ = "frozen";
    const auto expected = unbroken();
    Rig setup = open({"mesh.pp=2"});
    run(setup, 2, {2});
    EXPECT_EQ(run_and_take(setup, kTrainedSteps, {}), expected);
}

TEST_F(Checkpointing, everythingThatMakesItAnotherRunIsRefusedWithBothValues) {
    Rig setup = open();
    run(setup, 1, {1});
    const std::vector<std::pair<std::vector<std::string>, std::string>> changes{
        {{"train.seed=77"}, "seed was 1234, now 77"},
        {{"train.global_batch_size=9"}, "global_batch_size was 6, now 9"},
        {{"pipeline.num_microbatches=2"}, "pipeline.num_microbatches x train.accumulate was 3, now 2"},
        {{"optimizer.kind=\"sgd\""}, "optimizer was adamw, now sgd"},
        {{"data.shuffle=false"}, "data.shuffle was true, now false"},
        {{"data.val_split=0.25"}, "data.val_split was 0.0, now 0.25"},
        {{"data.samples=65"}, "data was "}};
    for (const auto& [set, text] : changes) {
        Rig changed = open(set);
        const std::string error = error_of(ErrorKind::Refused, [&] { run(changed, 2, {}); });
        EXPECT_HAS(error, text);
        EXPECT_HAS(error, "checkpoint.resume = \"no\"");
    }
    Rig both = open({"train.seed=77", "optimizer.kind=\"sgd\""});
    const std::string error = error_of(ErrorKind::Refused, [&] { run(both, 2, {}); });
    EXPECT_HAS(error, "seed was");
    EXPECT_HAS(error, "optimizer was");
}

TEST_F(Checkpointing, anotherModelIsRefused) {
    Rig setup = open();
    run(setup, 1, {1});
    const auto digest = setup.prepared.program.training.graph.digest;
    setup.prepared.program.training.graph.digest.low ^= 1;
    const std::string error = error_of(ErrorKind::Refused, [&] { run(setup, 2, {}); });
    EXPECT_HAS(error, "model was " + to_hex(digest) + ", now " + to_hex(setup.prepared.program.training.graph.digest));
}

TEST_F(Checkpointing, theRefusalReachesEveryRank) {
    Rig setup = open({"mesh.pp=2"});
    run(setup, 1, {1});
    Rig changed = open({"mesh.pp=2", "train.seed=5"});
    int refused = 0;
    CheckpointStore store(folder_.path("run"));
    with_engines(changed, changed.prepared.program, [&](Engine& engine) {
        try {
            resume_checkpoint(engine, changed.plan, changed.prepared.program, store, log_.log);
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), ErrorKind::Refused);
            ++refused;
        }
    });
    EXPECT_EQ(refused, 2);
}

TEST_F(Checkpointing, whatMayDifferIsSaid) {
    Rig setup = open();
    run(setup, 1, {1});
    Rig changed = open({"optimizer.lr=0.5"});
    EXPECT_EQ(run(changed, 2, {}), 1);
    EXPECT_HAS(log_.text.str(), "resumed with other settings, so other bits are possible");
}

TEST_F(Checkpointing, whatAnEvaluatedCheckpointSaysCannotSteerATerminal) {
    Rig setup = open();
    run(setup, 1, {1});
    Manifest manifest = CheckpointReader(checkpoint(1)).manifest();
    manifest.state.facts["threads"] = "\x1b[2J";
    std::ofstream(fs::path(checkpoint(1)) / "manifest.json") << manifest_to_text(manifest);
    with_engines(setup, setup.prepared.program, [&](Engine& engine) {
        load_weights(Weights(), setup.plan, setup.prepared.program, engine.transport(), checkpoint(1), log_.log);
    });
    EXPECT_HAS(log_.text.str(), "the checkpoint was made with another threads (?[2J, now ");
}

TEST_F(Checkpointing, aPlanThatDoesNotResumeStartsAnew) {
    Rig setup = open();
    run(setup, 1, {1});
    Rig anew = open({"checkpoint.resume=\"no\"", "train.seed=5"});
    EXPECT_EQ(run(anew, 1, {}), 0);
}

TEST_F(Checkpointing, aNamedCheckpointIsTakenInsteadOfTheNewest) {
    Rig setup = open();
    const auto expected = run_and_take(setup, kTrainedSteps, {2, 4});
    Rig named = open({"checkpoint.resume=\"" + checkpoint(2) + "\""});
    EXPECT_EQ(run(named, 2, {}), 2);
    EXPECT_EQ(run_and_take(named, kTrainedSteps, {}), expected);
    Rig missing = open({"checkpoint.resume=\"" + checkpoint(3) + "\""});
    EXPECT_THROW(run(missing, kTrainedSteps, {}), Error);
}

TEST_F(Checkpointing, aDamagedNewestCheckpointFallsBackAndIsSaid) {
    Rig setup = open({"mesh.pp=2"});
    const auto expected = run_and_take(setup, kTrainedSteps, {2, 4});
    const fs::path shard = fs::path(checkpoint(4)) / "shard-00001.safetensors";
    ASSERT_TRUE(fs::exists(shard));
    std::fstream file(shard, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(-3, std::ios::end);
    const char byte = static_cast<char>(file.get() ^ 4);
    file.seekp(-3, std::ios::end);
    file.put(byte);
    file.close();
    EXPECT_EQ(run_and_take(setup, kTrainedSteps, {}), expected);
    EXPECT_HAS(log_.text.str(), "checkpoint skipped");
    EXPECT_HAS(log_.text.str(), "resumed after step 2");
}

TEST_F(Checkpointing, whenAllCheckpointsAreDamagedItDoesNotBeginAnew) {
    Rig setup = open();
    run(setup, kTrainedSteps, {2, 4});
    for (int64_t step : {2, 4}) fs::remove(fs::path(checkpoint(step)) / "manifest.json");
    EXPECT_HAS(error_of(ErrorKind::BadData, [&] { run(setup, kTrainedSteps, {}); }),
               folder_.path("run") + " has checkpoints, and none of them is whole: " + checkpoint(4) +
                   " is not a checkpoint: it has no manifest.json; name a folder like checkpoints/step-00000050 (and 1 "
                   "more, see the log); bring one back, or start anew with another run.dir or checkpoint.resume = "
                   "\"no\"");
    Rig anew = open({"checkpoint.resume=\"no\""});
    EXPECT_EQ(run(anew, 1, {}), 0);
}

TEST_F(Checkpointing, withoutCheckpointsItStartsAtTheBeginning) {
    Rig setup = open();
    EXPECT_EQ(run(setup, 1, {}), 0);
}

/// Ranks with run folders of their own: hosts that share no disk.
class CheckpointingApart : public Checkpointing {
  protected:
    /// As run, with rank r's run folder on host hosts[r].
    int64_t run_on(const std::string& hosts, Rig& setup, int64_t last, const std::vector<int64_t>& saves) {
        int64_t first = 0;
        final_.clear();
        with_engines(setup, setup.prepared.program, [&](Engine& engine) {
            Transport& transport = engine.transport();
            Plan plan = setup.plan;
            plan.run.dir = folder_.path(std::string(1, hosts[static_cast<size_t>(transport.rank())]));
            fs::create_directories(plan.run.dir);
            const RunFolders folders = RunFolders::find(transport, plan.run.dir);
            CheckpointStore store(plan.run.dir);
            const auto state = resume_checkpoint(engine, plan, setup.prepared.program, store, log_.log, folders);
            const int64_t step = state ? state->step : 0;
            if (transport.rank() == 0) first = step;
            for (int64_t done = step; done < last; ++done) {
                engine.run_step(done);
                if (std::find(saves.begin(), saves.end(), done + 1) == saves.end()) continue;
                const auto saved = save_checkpoint(engine, plan, setup.prepared.program, done + 1, folders);
                EXPECT_EQ(saved.problem, "");
            }
            const auto own = digests(engine.tensors());
            final_.insert(own.begin(), own.end());
        });
        return first;
    }
    fs::path part(const std::string& host, int64_t step) const {
        return CheckpointStore(folder_.path(host)).place_of(step);
    }
};

TEST_F(CheckpointingApart, AnyLayoutOnAnyHostsResumesWithTheBits) {
    for (const char* model : {"bn_cnn", "dropout"}) {
        model_ = model;
        const auto expected = unbroken();
        for (const char* hosts : {"ab", "ba", "aa", "abc", "cab", "bbc"}) {
            for (const char* host : {"a", "b", "c"}) fs::remove_all(folder_.path(host));
            Rig first = open({"mesh.pp=2"});
            Rig second = open(
                {"mesh.pp=" + std::to_string(std::string_view(hosts).size()), "pipeline.split_method=\"PARAMETERS\""});
            EXPECT_EQ(run_on("ab", first, 2, {2}), 0);
            if (std::string_view(hosts) == "aa") {
                const std::string said = error_of(ErrorKind::BadData, [&] { run_on(hosts, second, 1, {}); });
                EXPECT_HAS(said, "none of them is whole: ");
                EXPECT_HAS(said, "is missing: this folder holds 1 of 2 shards");
                fs::copy(part("b", 2) / "shard-00001.safetensors", part("a", 2) / "shard-00001.safetensors");
            } else if (std::string_view(hosts) == "bbc") {
                fs::rename(folder_.path("a"), folder_.path("c"));
            }
            EXPECT_EQ(run_on(hosts, second, kTrainedSteps, {4}), 2) << hosts;
            EXPECT_EQ(final_, expected) << model << " on " << hosts;
            EXPECT_EQ(run_on(hosts, second, kTrainedSteps, {}), 4) << hosts;
            EXPECT_EQ(final_, expected) << model << " on " << hosts;
        }
    }
}

TEST_F(CheckpointingApart, ADamagedPartFallsBackAndIsSaid) {
    const auto expected = unbroken();
    Rig setup = open({"mesh.pp=2"});
    run_on("ab", setup, kTrainedSteps, {2, 4});
    fs::remove(part("b", 4) / "shard-00001.safetensors");
    EXPECT_EQ(run_on("ab", setup, kTrainedSteps, {}), 2);
    EXPECT_EQ(final_, expected);
    EXPECT_HAS(log_.text.str(), "checkpoint skipped: ");
    EXPECT_HAS(log_.text.str(), "no run folder of the job holds a whole shard-00001.safetensors");
}

TEST_F(CheckpointingApart, WhenAllPartsAreLostItDoesNotBeginAnew) {
    Rig setup = open({"mesh.pp=2"});
    run_on("ab", setup, 2, {2});
    fs::remove(part("b", 2) / "shard-00001.safetensors");
    EXPECT_HAS(error_of(ErrorKind::BadData, [&] { run_on("ab", setup, kTrainedSteps, {}); }),
               " has checkpoints, and none of them is whole: ");
    // Killed between the commits of the folders: nothing was lost.
    fs::remove_all(part("b", 2));
    const std::string save_id = CheckpointReader(part("a", 2)).manifest().save_id;
    CheckpointStore(folder_.path("b")).begin(2, save_id);
    EXPECT_EQ(run_on("ab", setup, 1, {}), 0);
}

TEST_F(CheckpointingApart, AnotherSaveInTheWayIsSetAside) {
    const auto expected = unbroken();
    Rig setup = open({"mesh.pp=2"});
    run_on("ab", setup, 2, {2});
    fs::copy(part("a", 2), folder_.path("whole"));
    fs::copy(part("b", 2) / "shard-00001.safetensors", folder_.path("whole/shard-00001.safetensors"));
    run_on("ab", setup, 0, {});
    fs::remove_all(folder_.path("a"));
    fs::remove_all(folder_.path("b"));
    run_on("ab", setup, 2, {2});  // another save of the same step
    fs::remove_all(part("a", 2));
    fs::rename(folder_.path("whole"), part("a", 2));
    EXPECT_EQ(run_on("ab", setup, kTrainedSteps, {}), 2);
    EXPECT_EQ(final_, expected);
    EXPECT_HAS(log_.text.str(), "what was in the way of the checkpoint of step 2 is now ");
    EXPECT_TRUE(fs::exists(folder_.path("b/set-aside/step-00000002/shard-00001.safetensors")));
}

TEST_F(CheckpointingApart, AFolderThatIsNamedAndHoldsAPartIsRefused) {
    Rig setup = open({"mesh.pp=2"});
    run_on("ab", setup, 2, {2});
    Rig named = open({"mesh.pp=2", "checkpoint.resume=\"" + part("b", 2).string() + "\""});
    const std::string error = error_of(ErrorKind::BadData, [&] { run_on("ab", named, kTrainedSteps, {}); });
    EXPECT_HAS(error,
               "shard-00000.safetensors: is missing: this folder holds 1 of 2 shards; the run folder of another");
}

}  // namespace
}  // namespace vpp::test
