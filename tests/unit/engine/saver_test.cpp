// One save after another by hand; what a training makes of it is seen in train_test.
#include "engine/saver.hpp"

#include <chrono>
#include <thread>

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
        EXPECT_GT(polls, 10);
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

}  // namespace
}  // namespace vpp::test
