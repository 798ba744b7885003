// What a loss of power leaves is what was fsynced: every file before the rename that publishes it, and the folder of
// every rename before what relies on it.
#include "base/run_files.hpp"
#include "samples.hpp"
#include "support/disk_calls.hpp"

namespace vpp {
namespace {

namespace fs = std::filesystem;

using Calls = std::vector<std::string>;

class StoreDurable : public testing::Test {
  protected:
    test::ScratchFolder scratch_;
    test::DiskCalls calls_{scratch_.path()};
    CheckpointStore store_{scratch_.path() / "runs" / "a"};
    const fs::path folder_ = scratch_.path() / "runs" / "a" / "checkpoints";
};

TEST_F(StoreDurable, ASaveIsOnTheDiskBeforeItHasItsName) {
    test::save(store_, 50, "s1", 1);
    const std::string folder = "runs/a/checkpoints", temporary = folder + "/.tmp-step-00000050-s1";
    EXPECT_EQ(
        calls_.take(),
        (Calls{"fsync .", "fsync runs", "fsync runs/a", "fsync " + folder,  // each new folder's parent
               "fsync " + temporary + "/shard-00001.safetensors", "fsync " + temporary + "/shard-00000.safetensors",
               "fsync " + temporary + "/manifest.json", "fsync " + temporary,
               "rename " + temporary + " to " + folder + "/step-00000050", "fsync " + folder}));
}

TEST_F(StoreDurable, AReplacedOneIsGivenUpBehindTheNewOnesName) {
    test::save(store_, 50, "s1", 1);
    calls_.take();
    test::save(store_, 50, "s2", 2);
    const Calls calls = calls_.take();
    const std::string folder = "runs/a/checkpoints", step = folder + "/step-00000050";
    ASSERT_GT(calls.size(), 6u);
    EXPECT_EQ(Calls(calls.end() - 6, calls.end()),
              (Calls{"fsync " + folder + "/.tmp-step-00000050-s2", "rename " + step + " to " + step + ".old",
                     "rename " + folder + "/.tmp-step-00000050-s2 to " + step, "fsync " + folder,
                     "rename " + step + ".old to " + folder + "/.trash-step-00000050.old", "fsync " + folder}));
}

// The process before died between renames.
TEST_F(StoreDurable, WhatADeadReplacementLeftIsSettledInTheSameOrder) {
    const fs::path current = test::save(store_, 50, "s1", 1), old = current.string() + ".old";
    const std::string folder = "runs/a/checkpoints", step = folder + "/step-00000050";
    fs::rename(current, old);
    calls_.take();
    store_.remove_left_overs();
    EXPECT_EQ(calls_.take(), (Calls{"rename " + step + ".old to " + step, "fsync " + folder}));
    fs::copy(current, old);
    store_.remove_left_overs();
    EXPECT_EQ(calls_.take(),
              (Calls{"fsync " + folder, "rename " + step + ".old to " + folder + "/.trash-step-00000050.old",
                     "fsync " + folder}));
}

TEST_F(StoreDurable, OneThatIsSetAsideIsThereBeforeItIsGone) {
    test::save(store_, 50, "s1", 1);
    calls_.take();
    store_.set_aside_after(0);
    const std::string folder = "runs/a/checkpoints", aside = "runs/a/" + std::string(run_files::kSetAside);
    EXPECT_EQ(calls_.take(),
              (Calls{"fsync runs/a", "rename " + folder + "/step-00000050 to " + aside + "/step-00000050",
                     "fsync " + aside, "fsync " + folder}));
}

}  // namespace
}  // namespace vpp
