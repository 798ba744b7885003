// A process dies at every stop point of a save, of a replacement and of a pruning; what is left must be the old or the
// new checkpoint, whole, and the next save must work.
#include <sys/wait.h>
#include <unistd.h>

#include "samples.hpp"

namespace vpp {
namespace {

namespace fs = std::filesystem;

constexpr int kKilled = 43;

/// Runs `work` on a store whose process ends without any clean-up at the n-th stop point (from 0). Whether it did.
bool dies_at(int n, const fs::path& run, const std::function<void(CheckpointStore&)>& work) {
    const pid_t child = ::fork();
    if (child == 0) {
        int rest = n;
        CheckpointStore store(run, [&](std::string_view) {
            if (rest-- == 0) ::_exit(kKilled);
        });
        const auto error = test::caught_error([&] { work(store); });
        ::_exit(error ? 1 : 0);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_TRUE(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == kKilled) << status;
    return WEXITSTATUS(status) == kKilled;
}

size_t entries_in(const fs::path& folder) {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

/// What verifies newest is whole and has one of the two salts; says which.
int newest_salt(const CheckpointStore& store, int old_salt, int new_salt) {
    std::vector<std::string> skipped;
    const auto newest = store.newest_verified(skipped);
    EXPECT_TRUE(newest);
    EXPECT_TRUE(skipped.empty()) << skipped.front();
    if (!newest) return -1;
    if (test::holds(*newest, old_salt)) return old_salt;
    EXPECT_TRUE(test::holds(*newest, new_salt)) << "neither the old nor the new one";
    return new_salt;
}

/// Kills a save of `step` at every point in turn, over a run that has step 50; gives the number of points.
int kill_saves_of(int64_t step) {
    int num_points = 0;
    bool seen_old = false, seen_new = false;
    for (bool died = true; died; ++num_points) {
        SCOPED_TRACE("stop point " + std::to_string(num_points));
        const test::ScratchFolder scratch;
        CheckpointStore store(scratch.path());
        test::save(store, 50, "first", 1);
        died =
            dies_at(num_points, scratch.path(), [&](CheckpointStore& dying) { test::save(dying, step, "dying", 2); });
        const int salt = newest_salt(store, 1, 2);
        seen_old |= salt == 1;
        seen_new |= salt == 2;
        EXPECT_TRUE(died || salt == 2);
        // The same command again: the save works, nothing of the dead one is left.
        test::save(store, step, "again", 3);
        EXPECT_EQ(newest_salt(store, 3, 3), 3);
        EXPECT_EQ(entries_in(scratch.path() / "checkpoints"), step == 50 ? 1u : 2u);
        if (testing::Test::HasFailure()) break;
    }
    EXPECT_TRUE(seen_old && seen_new);
    return num_points - 1;
}

TEST(StoreCrash, ANewStepAppearsWholeOrNotAtAll) {
    EXPECT_EQ(kill_saves_of(60), 19);
}

TEST(StoreCrash, AReplacedStepIsTheOldOrTheNewOne) {
    EXPECT_EQ(kill_saves_of(50), 26);
}

TEST(StoreCrash, AFirstSaveLeavesNothingOrAWholeCheckpoint) {
    bool died = true;
    int n = 0;
    for (; died; ++n) {
        SCOPED_TRACE("stop point " + std::to_string(n));
        const test::ScratchFolder scratch;
        died = dies_at(n, scratch.path(), [](CheckpointStore& store) { test::save(store, 50, "dying", 2); });
        CheckpointStore store(scratch.path());
        std::vector<std::string> skipped;
        const auto newest = store.newest_verified(skipped);
        EXPECT_TRUE(skipped.empty());
        EXPECT_TRUE(!newest || test::holds(*newest, 2));
        test::save(store, 50, "again", 3);
        EXPECT_EQ(entries_in(scratch.path() / "checkpoints"), 1u);
    }
    EXPECT_EQ(n - 1, 19);
}

TEST(StoreCrash, PruningLeavesTheNewestWhole) {
    bool died = true;
    int n = 0;
    for (; died; ++n) {
        SCOPED_TRACE("stop point " + std::to_string(n));
        const test::ScratchFolder scratch;
        CheckpointStore store(scratch.path());
        for (int step : {10, 20, 30, 40}) test::save(store, step, "s" + std::to_string(step), step);
        died = dies_at(n, scratch.path(), [](CheckpointStore& dying) { dying.prune(2); });
        EXPECT_EQ(newest_salt(store, 40, 40), 40);
        for (const fs::path& checkpoint : store.list()) EXPECT_NO_THROW(CheckpointReader(checkpoint).verify());
        EXPECT_GE(store.list().size(), 2u);
        test::save(store, 50, "again", 3);
        store.prune(2);
        EXPECT_EQ(entries_in(scratch.path() / "checkpoints"), 2u);
    }
    EXPECT_EQ(n - 1, 12);
}

TEST(StoreCrash, TheRepairOfACutReplacementMayBeCutToo) {
    // Each way the replacement can be left behind, and a death at each point of the begin that settles it.
    for (const bool new_is_there : {false, true}) {
        for (const bool new_is_whole : {false, true}) {
            bool died = true;
            for (int n = 0; died; ++n) {
                SCOPED_TRACE("stop point " + std::to_string(n));
                const test::ScratchFolder scratch;
                CheckpointStore store(scratch.path()), other(scratch.path() / "other");
                const fs::path current = test::save(store, 50, "first", 1);
                fs::rename(current, current.string() + ".old");
                if (new_is_there) fs::rename(test::save(other, 50, "second", 2), current);
                if (new_is_there && !new_is_whole) fs::resize_file(current / "shard-00000.safetensors", 9);
                died = dies_at(n, scratch.path(), [](CheckpointStore& dying) { dying.begin(60, "dying"); });
                const int expected = new_is_there && new_is_whole ? 2 : 1;
                std::vector<std::string> skipped;
                const auto newest = store.newest_verified(skipped);
                ASSERT_TRUE(newest);
                EXPECT_TRUE(test::holds(*newest, expected));
                store.begin(60, "again");
                EXPECT_TRUE(test::holds(current, expected));
            }
        }
    }
}

TEST(StoreCrash, TheTestSeesAnUnsafeOrder) {
    // Negative control: a process that deletes the old checkpoint before it renames the new one, and dies in between.
    const test::ScratchFolder scratch;
    CheckpointStore store(scratch.path());
    const fs::path checkpoint = test::save(store, 50, "first", 1);
    const pid_t child = ::fork();
    if (child == 0) {
        CheckpointStore unsafe(scratch.path(), [&](std::string_view point) {
            if (point != "commit.temporary_synced") return;
            fs::remove_all(checkpoint);
            ::_exit(kKilled);
        });
        test::save(unsafe, 50, "unsafe", 2);
        ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(WEXITSTATUS(status), kKilled);
    std::vector<std::string> skipped;
    EXPECT_EQ(store.newest_verified(skipped), std::nullopt);
}

}  // namespace
}  // namespace vpp
