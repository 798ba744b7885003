// One save after another by hand; what a training makes of it is seen in train_test.
#include "engine/saver.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "checkpoint/manifest.hpp"
#include "unit/engine/support.hpp"

namespace vpp::test {
namespace {

namespace fs = std::filesystem;

class Saving : public ::testing::Test {
  protected:
    Rig open(std::vector<std::string> set = {}) {
        set.push_back("run.dir=\"" + folder_.path("run") + "\"");
        set.push_back("mesh.pp=2");
        return set_up_tiny("mlp", folder_.path("."), set);
    }
    TemporaryFolder folder_;
};

TEST_F(Saving, pollNeverWaitsForADisk) {
    Rig setup = open();
    const auto slow = [](std::string_view point) {
        if (point == "shard.header_written") std::this_thread::sleep_for(std::chrono::milliseconds(200));
    };
    with_engines(setup, setup.prepared.program, [&](Engine& engine) {
        Saver saver(engine, setup.plan, setup.prepared.program, slow);
        EXPECT_FALSE(saver.poll());
        saver.start(7, {{"note", "kept"}});
        EXPECT_TRUE(saver.is_saving());
        int polls = 0;
        std::optional<SaveResult> result;
        for (; !result; ++polls) {
            result = saver.poll();
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        EXPECT_GT(polls, 2);
        EXPECT_FALSE(saver.is_saving());
        EXPECT_EQ(result->step, 7);
        EXPECT_EQ(result->problem, "");
        EXPECT_GE(result->seconds, 0.2);
        EXPECT_LT(result->pause_seconds, result->seconds);
        const CheckpointReader reader(result->folder);
        reader.verify();
        EXPECT_EQ(reader.manifest().state.facts.at("note"), "kept");
        int64_t size_bytes = 0;
        for (const ShardRecord& shard : reader.manifest().shards) size_bytes += static_cast<int64_t>(shard.size_bytes);
        EXPECT_EQ(result->size_bytes, size_bytes);
    });
}

TEST_F(Saving, aProblemOfAnyPartIsEverybodysResultAndLeavesNothing) {
    Rig setup = open();
    for (const char* point : {"begin.temporary_made", "shard.header_written", "shard.synced", "manifest.written"}) {
        with_engines(setup, setup.prepared.program, [&](Engine& engine) {
            const bool fails_here = engine.transport().rank() == (std::string_view(point) == "shard.synced" ? 1 : 0);
            Saver saver(engine, setup.plan, setup.prepared.program, [&](std::string_view reached) {
                if (fails_here && reached == point) throw Error(ErrorKind::Io, "no space left");
            });
            saver.start(3);
            const SaveResult result = saver.finish();
            EXPECT_EQ(result.problem, "no space left") << point;
            EXPECT_TRUE(result.folder.empty());
        });
        EXPECT_TRUE(CheckpointStore(setup.plan.run.dir).list().empty());
        Rig good = open();
        with_engines(good, good.prepared.program, [&](Engine& engine) {
            EXPECT_EQ(save_checkpoint(engine, good.plan, good.prepared.program, 3).problem, "");
        });
        const fs::path folder = fs::path(setup.plan.run.dir) / "checkpoints";
        EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1) << "the next save clears up, after " << point;
        fs::remove_all(folder);
    }
}

/// Two ranks with a run folder each.
class SavingApart : public Saving {
  protected:
    Plan plan_of(const Rig& setup, int rank) const {
        Plan plan = setup.plan;
        plan.run.dir = folder_.path(rank == 0 ? "a" : "b");
        return plan;
    }
    /// One save on each rank; its result on rank 0. Points reached on rank 1 go to `stop`.
    SaveResult save(Rig& setup, int64_t step, const StopHook& stop = {}) {
        SaveResult result;
        with_engines(setup, setup.prepared.program, [&](Engine& engine) {
            const int rank = engine.transport().rank();
            const Plan plan = plan_of(setup, rank);
            Saver saver(engine, plan, setup.prepared.program, rank == 1 ? stop : StopHook{}, folders_);
            saver.start(step, {{"note", rank == 0 ? "of rank 0" : "of rank 1"}});
            const SaveResult own = saver.finish();
            EXPECT_EQ(own.step, step);
            if (rank == 0) result = own;
        });
        return result;
    }
    fs::path checkpoints(int rank) const { return folder_.path(rank == 0 ? "a/checkpoints" : "b/checkpoints"); }
    Manifest manifest(int rank, const std::string& name) const {
        return CheckpointReader(checkpoints(rank) / name).manifest();
    }
    std::string to_text_of(int rank) const { return manifest_to_text(manifest(rank, "step-00000003")); }
    std::vector<std::string> names(int rank) const {
        std::vector<std::string> found;
        for (const auto& entry : fs::directory_iterator(checkpoints(rank))) found.push_back(entry.path().filename());
        std::sort(found.begin(), found.end());
        return found;
    }

    RunFolders folders_{{0, 1}, {"alpha", "beta"}};
};

using Names = std::vector<std::string>;

TEST_F(SavingApart, EveryFolderGetsTheManifestAndItsOwnShards) {
    Rig setup = open();
    const SaveResult result = save(setup, 3);
    EXPECT_EQ(result.problem + result.note, "");
    EXPECT_EQ(result.folder, checkpoints(0) / "step-00000003");
    EXPECT_EQ(to_text_of(0), to_text_of(1));
    const Manifest all = manifest(0, "step-00000003");
    EXPECT_EQ(all.state.facts.at("note"), "of rank 0");
    ASSERT_EQ(all.shards.size(), 2u);
    for (int rank = 0; rank < 2; ++rank) {
        const CheckpointReader part(checkpoints(rank) / "step-00000003", {all.shards[static_cast<size_t>(rank)].file});
        part.verify();
        EXPECT_FALSE(fs::exists(checkpoints(rank) / "step-00000003" / all.shards[static_cast<size_t>(1 - rank)].file));
    }
}

TEST_F(SavingApart, PruningIsEveryKeepersAndComesAfterAllCommits) {
    Rig setup = open({"checkpoint.keep=1"});
    save(setup, 3);
    bool is_old_there = false;
    const SaveResult result = save(setup, 6, [&](std::string_view point) {
        if (point == "commit.renamed") is_old_there = fs::exists(checkpoints(0) / "step-00000003");
    });
    EXPECT_EQ(result.problem, "");
    EXPECT_TRUE(is_old_there) << "rank 0 may not delete it before rank 1 has committed";
    for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(names(rank), Names{"step-00000006"});
}

TEST_F(SavingApart, AFailureOfOneKeeperLeavesTheOldOneInAllFolders) {
    for (const char* point : {"begin.temporary_made", "shard.synced", "manifest.synced", "commit.old_set_aside",
                              "commit.renamed", "commit.synced"}) {
        for (int rank = 0; rank < 2; ++rank) fs::remove_all(checkpoints(rank));
        Rig setup = open();
        ASSERT_EQ(save(setup, 3).problem, "");
        const std::string old = manifest(0, "step-00000003").save_id;
        const SaveResult failed = save(setup, 3, [&](std::string_view reached) {
            if (reached == point) throw Error(ErrorKind::Io, "no space left");
        });
        EXPECT_EQ(failed.problem, "no space left") << point;
        EXPECT_TRUE(failed.folder.empty());
        for (int rank = 0; rank < 2; ++rank) {
            EXPECT_EQ(manifest(rank, "step-00000003").save_id, old) << point << ", rank " << rank;
            EXPECT_FALSE(fs::exists(checkpoints(rank) / "step-00000003.old")) << point << ", rank " << rank;
        }
        ASSERT_EQ(save(setup, 3).problem, "") << point;
        for (int rank = 0; rank < 2; ++rank) {
            EXPECT_NE(manifest(rank, "step-00000003").save_id, old);
            EXPECT_EQ(names(rank), Names{"step-00000003"}) << "the next save clears up, after " << point;
        }
    }
}

}  // namespace
}  // namespace vpp::test
