#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "samples.hpp"

namespace vpp {
namespace {

using test::code_in_child;
using test::expect_error;
namespace fs = std::filesystem;

std::vector<std::string> names_in(const fs::path& folder) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
}

std::vector<std::string> listed(const CheckpointStore& store) {
    std::vector<std::string> names;
    for (const fs::path& folder : store.list()) names.push_back(folder.filename().string());
    return names;
}

using Names = std::vector<std::string>;

class StoreTest : public testing::Test {
  protected:
    StoreTest() : run_(scratch_.path() / "runs" / "a"), store_(run_), folder_(run_ / "checkpoints") {}

    test::ScratchFolder scratch_;
    fs::path run_;
    CheckpointStore store_;
    fs::path folder_;
    std::vector<std::string> skipped_;
};

TEST_F(StoreTest, AFreshRunHasNoCheckpoint) {
    EXPECT_TRUE(store_.list().empty());
    EXPECT_EQ(store_.newest_verified(skipped_), std::nullopt);
    EXPECT_TRUE(skipped_.empty());
    EXPECT_FALSE(fs::exists(folder_));
}

TEST_F(StoreTest, SavesAndFindsTheNewest) {
    EXPECT_EQ(test::save(store_, 50, "s1", 1), folder_ / "step-00000050");
    test::save(store_, 1234567890, "s2", 2);
    test::save(store_, 100, "s3", 3);
    EXPECT_EQ(listed(store_), (Names{"step-1234567890", "step-00000100", "step-00000050"}));
    EXPECT_EQ(store_.newest_verified(skipped_), folder_ / "step-1234567890");
    EXPECT_TRUE(test::holds(folder_ / "step-00000100", 3));
    EXPECT_EQ(names_in(folder_).size(), 3u);
    EXPECT_EQ(names_in(folder_ / "step-00000050"),
              (Names{"manifest.json", "shard-00000.safetensors", "shard-00001.safetensors"}));
}

TEST_F(StoreTest, ACheckpointIsSeenOnlyAfterItsCommit) {
    store_.begin(50, "s1");
    const test::SampleState state(1);
    const ShardRecord shard = store_.write_shard(50, "s1", 0, state.tensors());
    EXPECT_TRUE(store_.list().empty());
    store_.commit("s1", test::sample_state(50), {shard});
    EXPECT_EQ(listed(store_), Names{"step-00000050"});
}

TEST_F(StoreTest, EveryRenameComesAfterTheFsyncs) {
    std::vector<std::string> points;
    CheckpointStore store(run_, [&](std::string_view point) { points.emplace_back(point); });
    test::save(store, 50, "s1", 1);
    const Names tensors(4, "shard.tensor_written");
    Names expected{"begin.folder_made", "begin.temporary_made"};
    for (int writer = 0; writer < 2; ++writer) {
        expected.emplace_back("shard.header_written");
        expected.insert(expected.end(), tensors.begin(), tensors.end());
        expected.emplace_back("shard.synced");
    }
    for (const char* point :
         {"manifest.written", "manifest.synced", "commit.temporary_synced", "commit.renamed", "commit.synced"}) {
        expected.emplace_back(point);
    }
    EXPECT_EQ(points, expected);
    points.clear();
    test::save(store, 50, "s2", 2);
    EXPECT_EQ(Names(points.end() - 9, points.end()),
              (Names{"commit.old_set_aside", "commit.renamed", "commit.synced", "discard.renamed", "discard.synced",
                     "discard.file_removed", "discard.file_removed", "discard.file_removed", "discard.removed"}));
}

TEST_F(StoreTest, ASecondSaveOfAStepReplacesTheFirst) {
    test::save(store_, 50, "s1", 1);
    test::save(store_, 50, "s2", 2);
    EXPECT_EQ(names_in(folder_), Names{"step-00000050"});
    EXPECT_TRUE(test::holds(folder_ / "step-00000050", 2));
}

TEST_F(StoreTest, DamagedOnesAreSkippedAndSaid) {
    test::save(store_, 50, "s1", 1);
    test::save(store_, 100, "s2", 2);
    test::save(store_, 150, "s3", 3);
    test::write_file(folder_ / "step-00000150" / "shard-00000.safetensors", "short");
    fs::remove(folder_ / "step-00000100" / "manifest.json");
    EXPECT_EQ(store_.newest_verified(skipped_), folder_ / "step-00000050");
    ASSERT_EQ(skipped_.size(), 2u);
    EXPECT_NE(skipped_[0].find("step-00000150/shard-00000.safetensors: cut off at byte 5"), std::string::npos);
    EXPECT_NE(skipped_[1].find("step-00000100 is not a checkpoint"), std::string::npos);
    fs::remove_all(folder_ / "step-00000050");
    EXPECT_EQ(store_.newest_verified(skipped_), std::nullopt);
}

TEST_F(StoreTest, ARenamedCheckpointIsNotTakenForAnotherStep) {
    test::save(store_, 50, "s1", 1);
    fs::rename(folder_ / "step-00000050", folder_ / "step-00000060");
    EXPECT_EQ(store_.newest_verified(skipped_), std::nullopt);
    EXPECT_NE(skipped_.at(0).find("step-00000060: holds step 50"), std::string::npos);
}

TEST_F(StoreTest, WhatTheDiskDoesNotGiveIsNotSkipped) {
    test::save(store_, 50, "s1", 1);
    const fs::path newest = test::save(store_, 60, "s2", 2);
    fs::permissions(scratch_.path(), fs::perms(0755));
    const auto search = [&] { store_.newest_verified(skipped_); };
    EXPECT_EQ(code_in_child(search), 0);
    for (const fs::path& path : {newest / "manifest.json", newest / "shard-00001.safetensors", newest}) {
        const fs::perms before = fs::status(path).permissions();
        fs::permissions(path, fs::perms::none);
        EXPECT_EQ(code_in_child(search), exit_code(ErrorKind::Io)) << path;
        EXPECT_EQ(code_in_child([&] {
                      if (!CheckpointStore::damage(newest).bars_older) throw Error(ErrorKind::Bug, "");
                  }),
                  0)
            << path;
        fs::permissions(path, before);
    }
    EXPECT_EQ(code_in_child(search), 0);
    fs::permissions(newest / "shard-00001.safetensors", fs::perms::none);
    EXPECT_EQ(code_in_child([&] {
                  const std::vector<ShardState> states = CheckpointReader(newest).shard_states();
                  const bool is_told = states[1].is_there && states[1].may_be_whole && !states[0].may_be_whole;
                  if (!is_told) throw Error(ErrorKind::Bug, "");
              }),
              0);
}

TEST_F(StoreTest, AReplacementThatTheDiskDoesNotGiveIsNotSettled) {
    const fs::path current = folder_ / "step-00000050", old = folder_ / "step-00000050.old";
    test::save(store_, 50, "s1", 1);
    fs::rename(current, old);
    CheckpointStore other(scratch_.path() / "other");
    fs::rename(test::save(other, 50, "s2", 2), current);
    for (const fs::path& path : {scratch_.path(), run_, folder_, current, old}) {
        fs::permissions(path, fs::perms(0777));
    }
    const auto begin = [&] { store_.begin(60, "s3"); };
    fs::permissions(current / "shard-00000.safetensors", fs::perms::none);
    EXPECT_EQ(code_in_child(begin), exit_code(ErrorKind::Io));
    fs::permissions(current / "shard-00000.safetensors", fs::perms(0644));
    EXPECT_TRUE(test::holds(current, 2));
    EXPECT_TRUE(test::holds(old, 1));
    EXPECT_EQ(code_in_child(begin), 0);
    EXPECT_TRUE(test::holds(current, 2));
    EXPECT_FALSE(fs::exists(old));
}

TEST_F(StoreTest, OneOfAnotherVersionIsRefusedAndNotSkipped) {
    test::save(store_, 50, "s1", 1);
    const fs::path newest = test::save(store_, 60, "s2", 2);
    test::set_format_version(newest, 1);
    EXPECT_EQ(store_.newest_verified(skipped_), newest) << "the control";
    test::set_format_version(newest, 2);
    expect_error(ErrorKind::BadData,
                 (newest / "manifest.json").string() +
                     ": format version 2, this vpp reads version 1; use the vpp that wrote it, or start a new run "
                     "folder; no older checkpoint is taken in place of one that may be whole",
                 [&] { store_.newest_verified(skipped_); });
    test::save(store_, 70, "s3", 3);
    EXPECT_EQ(store_.newest_verified(skipped_), folder_ / "step-00000070") << "an older one is nobody's concern";
}

/// Moves a checkpoint out of the run, and leaves a link where it was.
void put_behind_link(const fs::path& checkpoint, const fs::path& archive) {
    fs::create_directories(archive);
    fs::rename(checkpoint, archive / checkpoint.filename());
    fs::create_directory_symlink(archive / checkpoint.filename(), checkpoint);
}

TEST_F(StoreTest, ANewerOneBehindALinkIsRefusedAndNotPassedOver) {
    for (const int step : {50, 60}) test::save(store_, step, "s" + std::to_string(step), step);
    const fs::path link = folder_ / "step-00000060";
    put_behind_link(link, scratch_.path() / "archive");
    EXPECT_EQ(listed(store_), Names{"step-00000050"});
    EXPECT_EQ(store_.entries(), (std::vector<fs::path>{link, folder_ / "step-00000050"}));
    expect_error(ErrorKind::BadData,
                 link.string() +
                     ": is a symbolic link, and a checkpoint of a run is a folder in its place; move that folder back "
                     "here, or the link away; no older checkpoint is taken in place of one that may be whole",
                 [&] { store_.newest_verified(skipped_); });
    EXPECT_TRUE(skipped_.empty());
    test::save(store_, 70, "s70", 70);
    EXPECT_EQ(store_.newest_verified(skipped_), folder_ / "step-00000070") << "an older one is in nobody's way";
    store_.prune(1);
    EXPECT_EQ(names_in(folder_), (Names{"step-00000060", "step-00000070"}));
    EXPECT_TRUE(test::holds(link, 60));
}

TEST_F(StoreTest, AFileInPlaceOfANewerOneIsRefusedToo) {
    test::save(store_, 50, "s1", 1);
    test::write_file(folder_ / "step-00000060", "a file");
    expect_error(ErrorKind::BadData, "step-00000060: is not a folder, as a checkpoint is; move it away; no older",
                 [&] { store_.newest_verified(skipped_); });
}

TEST_F(StoreTest, ALinkInPlaceOfALaterOneIsSetAside) {
    for (const int step : {50, 60}) test::save(store_, step, "s" + std::to_string(step), step);
    put_behind_link(folder_ / "step-00000060", scratch_.path() / "archive");
    EXPECT_EQ(store_.set_aside_after(50), std::vector<fs::path>{run_ / "set-aside" / "step-00000060"});
    EXPECT_TRUE(test::holds(run_ / "set-aside" / "step-00000060", 60));
    EXPECT_TRUE(test::holds(test::save(store_, 60, "again", 1), 1));
}

TEST_F(StoreTest, OtherThingsInTheFolderAreLeftAlone) {
    test::save(store_, 50, "s1", 1);
    test::write_file(folder_ / "notes.txt", "mine");
    test::write_file(folder_ / "step-00000099", "a file");
    fs::create_directory(folder_ / "step-1");
    test::save(store_, 60, "s2", 2);
    store_.prune(1);
    EXPECT_EQ(listed(store_), Names{"step-00000060"});
    EXPECT_EQ(names_in(folder_), (Names{"notes.txt", "step-00000060", "step-00000099", "step-1"}));
}

TEST_F(StoreTest, BeginRemovesWhatDeadSavesLeft) {
    test::save(store_, 50, "s1", 1);
    fs::create_directories(folder_ / ".tmp-step-00000060-dead" / "sub");
    test::write_file(folder_ / ".tmp-step-00000060-dead" / "shard-00000.safetensors", "half");
    fs::create_directories(folder_ / ".trash-step-00000040");
    fs::create_symlink(folder_ / "step-00000050", folder_ / ".trash-link");
    store_.begin(70, "s2");
    EXPECT_EQ(names_in(folder_), (Names{".tmp-step-00000070-s2", "step-00000050"}));
    EXPECT_TRUE(test::holds(folder_ / "step-00000050", 1));
}

TEST_F(StoreTest, ReplacementsOfLaterStepsWaitWhereThatIsAsked) {
    for (const int step : {50, 60}) test::save(store_, step, "s" + std::to_string(step), 1);
    for (const fs::path& current : store_.list()) fs::rename(current, current.string() + ".old");
    store_.remove_left_overs(49);
    EXPECT_EQ(names_in(folder_), (Names{"step-00000050.old", "step-00000060.old"}));
    store_.remove_left_overs(50);
    EXPECT_EQ(names_in(folder_), (Names{"step-00000050", "step-00000060.old"}));
    store_.remove_left_overs();
    EXPECT_EQ(names_in(folder_), (Names{"step-00000050", "step-00000060"}));
}

TEST_F(StoreTest, AReplacementThatWasCutOffIsSettledByWhatVerifies) {
    // Between the two renames: only the old one is there.
    const fs::path current = folder_ / "step-00000050", old = folder_ / "step-00000050.old";
    test::save(store_, 50, "s1", 1);
    fs::rename(current, old);
    EXPECT_EQ(store_.newest_verified(skipped_), old);
    store_.begin(60, "s2");
    EXPECT_TRUE(test::holds(current, 1));
    EXPECT_FALSE(fs::exists(old));
    // After both renames: the new one wins when it verifies.
    fs::rename(current, old);
    fs::create_directory(folder_ / "elsewhere");
    CheckpointStore other(scratch_.path() / "other");
    fs::rename(test::save(other, 50, "s3", 2), current);
    EXPECT_EQ(store_.newest_verified(skipped_), current);
    store_.begin(60, "s4");
    EXPECT_TRUE(test::holds(current, 2));
    EXPECT_FALSE(fs::exists(old));
    // And loses when it does not, be it by one bit.
    fs::rename(current, old);
    fs::rename(test::save(other, 50, "s5", 3), current);
    test::write_file(current / "shard-00001.safetensors", "");
    EXPECT_EQ(store_.newest_verified(skipped_), old);
    store_.begin(60, "s6");
    EXPECT_TRUE(test::holds(current, 2));
    EXPECT_EQ(listed(store_), Names{"step-00000050"});
    fs::rename(current, old);
    fs::rename(test::save(other, 50, "s7", 3), current);
    std::string shard = test::read_file(current / "shard-00001.safetensors");
    shard.back() = static_cast<char>(shard.back() ^ 1);
    test::write_file(current / "shard-00001.safetensors", shard);
    store_.begin(60, "s8");
    EXPECT_TRUE(test::holds(current, 2));
    EXPECT_EQ(listed(store_), Names{"step-00000050"});
}

/// Puts a save of step 50 with salt 2 in front of one with salt 1.
class ReplacedStoreTest : public StoreTest {
  protected:
    ReplacedStoreTest() {
        fs::rename(test::save(store_, 50, "first", 1), old_);
        CheckpointStore other(scratch_.path() / "other");
        fs::rename(test::save(other, 50, "second", 2), current_);
    }
    const fs::path current_ = folder_ / "step-00000050", old_ = folder_ / "step-00000050.old";
};

// Each may be the part that this host has of a save of the whole job.
TEST_F(ReplacedStoreTest, TwoPartsAreBothLeft) {
    fs::remove(current_ / "shard-00000.safetensors");
    fs::remove(old_ / "shard-00001.safetensors");
    store_.remove_left_overs();
    EXPECT_EQ(names_in(folder_), (Names{"step-00000050", "step-00000050.old"}));
    EXPECT_EQ(CheckpointReader(current_).manifest().save_id, "second");
}

TEST_F(ReplacedStoreTest, TwoDamagedOnesAreBothLeft) {
    for (const fs::path& checkpoint : {current_, old_}) test::write_file(checkpoint / "shard-00001.safetensors", "");
    store_.begin(60, "s3");
    EXPECT_EQ(names_in(folder_), (Names{".tmp-step-00000060-s3", "step-00000050", "step-00000050.old"}));
    EXPECT_EQ(CheckpointReader(current_).manifest().save_id, "second");
}

TEST_F(ReplacedStoreTest, WhatIsBehindALinkIsLeftWithWhatItReplaced) {
    put_behind_link(current_, scratch_.path() / "archive");
    store_.begin(60, "s3");
    EXPECT_TRUE(test::holds(current_, 2));
    EXPECT_TRUE(test::holds(old_, 1));
}

TEST_F(ReplacedStoreTest, TheChosenSaveGetsItsPlace) {
    EXPECT_TRUE(store_.settle(50, "second").empty());
    EXPECT_EQ(names_in(folder_), Names{"step-00000050"});
    EXPECT_TRUE(test::holds(current_, 2));
}

TEST_F(ReplacedStoreTest, TheChosenSaveTakesItsPlaceBack) {
    EXPECT_TRUE(store_.settle(50, "first").empty());
    EXPECT_EQ(names_in(folder_), Names{"step-00000050"});
    EXPECT_TRUE(test::holds(current_, 1));
}

TEST_F(ReplacedStoreTest, WhatIsNotTheChosenSaveIsSetAside) {
    EXPECT_EQ(store_.settle(50, "third").size(), 2u);
    EXPECT_TRUE(names_in(folder_).empty());
    EXPECT_TRUE(test::holds(run_ / "set-aside" / "step-00000050", 2));
    EXPECT_TRUE(test::holds(run_ / "set-aside" / "step-00000050.old", 1));
}

TEST_F(ReplacedStoreTest, AWithdrawnSaveGivesThePlaceBack) {
    store_.withdraw(50, "second");
    EXPECT_EQ(names_in(folder_), Names{"step-00000050"});
    EXPECT_TRUE(test::holds(current_, 1));
    // What another save has put there is not this one's to take away.
    store_.withdraw(50, "second");
    EXPECT_TRUE(test::holds(current_, 1));
}

TEST_F(StoreTest, PruneKeepsTheNewest) {
    for (int64_t step : {10, 20, 30, 40}) test::save(store_, step, "s" + std::to_string(step), 1);
    store_.prune(0);
    EXPECT_EQ(store_.list().size(), 4u);
    store_.prune(9);
    EXPECT_EQ(store_.list().size(), 4u);
    store_.prune(3);
    EXPECT_EQ(listed(store_), (Names{"step-00000040", "step-00000030", "step-00000020"}));
    store_.prune(1);
    EXPECT_EQ(listed(store_), Names{"step-00000040"});
    EXPECT_EQ(names_in(folder_), Names{"step-00000040"});
    EXPECT_THROW(store_.prune(-1), Error);
}

TEST_F(StoreTest, PruneKeepsEverySoManySteps) {
    for (int64_t step : {10, 20, 25, 30, 35}) test::save(store_, step, "s" + std::to_string(step), 1);
    store_.prune(1, 20);
    EXPECT_EQ(listed(store_), (Names{"step-00000035", "step-00000020"}));
}

TEST_F(StoreTest, TidyDoesWhatASaveThatWasCutShortWouldHaveDone) {
    for (int64_t step : {10, 20, 30}) test::save(store_, step, "s" + std::to_string(step), 1);
    store_.begin(40, "gone");
    store_.tidy(2);
    EXPECT_EQ(names_in(folder_), (Names{"step-00000020", "step-00000030"}));
}

TEST_F(StoreTest, AnAbandonedSaveLeavesNothing) {
    test::save(store_, 10, "s1", 1);
    store_.begin(20, "gone");
    store_.abandon(20, "gone");
    store_.abandon(30, "never");
    EXPECT_EQ(names_in(folder_), Names{"step-00000010"});
}

TEST_F(StoreTest, PruneSparesTheOneJustCommittedAfterAnEarlierResume) {
    test::save(store_, 30, "s1", 1);
    test::save(store_, 40, "s2", 2);
    test::save(store_, 20, "s3", 3);
    store_.prune(1);
    EXPECT_EQ(listed(store_), (Names{"step-00000040", "step-00000020"}));
}

TEST_F(StoreTest, ADeletionBeginsWithARenameOfTheWhole) {
    bool seen = false;
    CheckpointStore store(run_, [&](std::string_view point) {
        if (point != "discard.renamed") return;
        seen = true;
        EXPECT_FALSE(fs::exists(folder_ / "step-00000010"));
        EXPECT_EQ(names_in(folder_ / ".trash-step-00000010").size(), 3u);
    });
    test::save(store, 10, "s1", 1);
    test::save(store, 20, "s2", 1);
    store.prune(1);
    EXPECT_TRUE(seen);
}

TEST_F(StoreTest, ADeletionMakesWayForItself) {
    test::save(store_, 10, "s1", 1);
    fs::create_directory(folder_ / ".trash-step-00000010");
    test::write_file(folder_ / ".trash-step-00000010" / "file", "of a deletion that was cut short");
    store_.remove(folder_ / "step-00000010");
    EXPECT_TRUE(names_in(folder_).empty());
}

TEST_F(StoreTest, ALateWriterOfADeadSaveIsRefused) {
    store_.begin(50, "dead");
    store_.begin(50, "alive");
    expect_error(ErrorKind::Output, "storage that all ranks share",
                 [&] { store_.write_shard(50, "dead", 0, test::SampleState(1).tensors()); });
    EXPECT_EQ(names_in(folder_), Names{".tmp-step-00000050-alive"});
}

TEST_F(StoreTest, CommitWantsExactlyTheShardsThatWereReported) {
    const fs::path temporary = store_.begin(50, "s1");
    const test::SampleState state(1);
    const ShardRecord shard = store_.write_shard(50, "s1", 0, state.tensors());
    ShardRecord absent = shard;
    absent.file = "shard-00001.safetensors";
    const auto commit = [&](std::vector<ShardRecord> shards) { store_.commit("s1", test::sample_state(50), shards); };
    expect_error(ErrorKind::Output, "shard-00001.safetensors was written but is not there", [&] {
        commit({shard, absent});
    });
    expect_error(ErrorKind::Bug, "its own shard", [&] { commit({shard, shard}); });
    ShardRecord longer = shard;
    ++longer.size_bytes;
    expect_error(ErrorKind::Output, "bytes instead of", [&] { commit({longer}); });
    test::write_file(temporary / "more", "");
    expect_error(
        ErrorKind::Output,
        (temporary / "more").string() + " belongs to no shard of this save; does another job use the same run.dir?",
        [&] { commit({shard}); });
    fs::remove(temporary / "more");
    EXPECT_TRUE(store_.list().empty());
    EXPECT_NO_THROW(commit({shard}));
}

TEST_F(StoreTest, FailedSavesKeepTheOldCommit) {
    // A limit on the size of files stands for the full disk.
    test::save(store_, 50, "s1", 1);
    const pid_t child = ::fork();
    if (child == 0) {
        ::signal(SIGXFSZ, SIG_IGN);
        const struct rlimit limit { 256, 256 };
        ::setrlimit(RLIMIT_FSIZE, &limit);
        const auto error = test::caught_error([&] { test::save(store_, 50, "s2", 2); });
        ::_exit(error ? exit_code(error->kind()) : 0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(WEXITSTATUS(status), exit_code(ErrorKind::Io));
    EXPECT_TRUE(test::holds(*store_.newest_verified(skipped_), 1));
    test::save(store_, 60, "s3", 3);
    EXPECT_EQ(names_in(folder_), (Names{"step-00000050", "step-00000060"}));
}

// A training goes on then, and tries again.
TEST_F(StoreTest, AShardThatTheSystemDoesNotOpenIsAnIoError) {
    store_.begin(50, "s1");
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    const rlimit none{0, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    expect_error(ErrorKind::Io, "shard-00000.safetensors: Too many open files",
                 [&] { store_.write_shard(50, "s1", 0, test::SampleState(1).tensors()); });
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST_F(StoreTest, AReadOnlyRunFolderIsAnOutputError) {
    fs::permissions(scratch_.path(), fs::perms(0555));
    EXPECT_EQ(code_in_child([&] { store_.begin(50, "s1"); }), exit_code(ErrorKind::Output));
    fs::permissions(scratch_.path(), fs::perms(0755));
    // Negative control: a folder that may be written gives no error in the same child.
    fs::create_directories(folder_);
    for (const fs::path& path : {run_, folder_}) fs::permissions(path, fs::perms(0777));
    EXPECT_EQ(code_in_child([&] { store_.begin(50, "s1"); }), 0);
}

TEST_F(StoreTest, ARunFolderThatIsAFileIsAnOutputError) {
    test::write_file(scratch_.path() / "runs", "a file");
    expect_error(ErrorKind::Output,
                 "cannot create the folder " + run_.parent_path().string() +
                     ": File exists; run.dir must name a folder that can be written",
                 [&] { store_.begin(50, "s1"); });
    expect_error(ErrorKind::Io, "cannot list the folder " + folder_.string() + ": Not a directory",
                 [&] { store_.list(); });
}

TEST_F(StoreTest, AFileWhereTheOldCheckpointWouldGoIsSaid) {
    const fs::path first = test::save(store_, 50, "s1", 1);
    test::write_file(first.string() + ".old", "mine");
    expect_error(ErrorKind::Io, "cannot rename " + first.string() + " to " + first.string() + ".old: Not a directory",
                 [&] { test::save(store_, 50, "s2", 2); });
    EXPECT_TRUE(test::holds(first, 1));
}

TEST_F(StoreTest, WhatCannotBeDeletedIsNamed) {
    const fs::path left = store_.begin(50, "s1");
    test::write_file(left / "file", "");
    for (const fs::path& path : {scratch_.path(), run_, folder_}) fs::permissions(path, fs::perms(0777));
    fs::permissions(left, fs::perms(0555));
    const std::string expected = "cannot delete " + (left / "file").string() + ": Permission denied";
    EXPECT_EQ(code_in_child([&] {
                  const auto error = test::caught_error([&] { store_.begin(60, "s2"); });
                  throw Error(error && error->what() == expected ? ErrorKind::Io : ErrorKind::Bug, "");
              }),
              exit_code(ErrorKind::Io));
    fs::permissions(left, fs::perms(0755));
}

TEST_F(StoreTest, LaterCheckpointsAreSetAsideAndKept) {
    for (int64_t step : {10, 20, 30}) test::save(store_, step, "s" + std::to_string(step), 1);
    EXPECT_EQ(store_.set_aside_after(10).size(), 2u);
    EXPECT_EQ(listed(store_), Names{"step-00000010"});
    test::save(store_, 20, "again", 2);
    EXPECT_EQ(store_.set_aside_after(0).size(), 2u);
    EXPECT_TRUE(store_.list().empty());
    EXPECT_EQ(names_in(run_ / "set-aside"),
              (Names{"step-00000010", "step-00000020", "step-00000020.2", "step-00000030"}));
    EXPECT_TRUE(test::holds(run_ / "set-aside" / "step-00000020.2", 2));
    EXPECT_TRUE(store_.set_aside_after(0).empty());
}

TEST_F(StoreTest, WhereCheckpointsAreOnAnotherDiskTheyAreSetAsideThere) {
    EXPECT_EQ(store_.disk(), run_);
    test::save(store_, 10, "s1", 1);
    EXPECT_EQ(store_.disk(), run_);
    std::string pattern = "/dev/shm/vpp-checkpoint-XXXXXX";
    if (!::mkdtemp(pattern.data())) GTEST_SKIP() << "no /dev/shm";
    fs::remove_all(folder_);
    fs::create_directory_symlink(pattern, folder_);
    struct stat of_scratch {
    }, of_memory{};
    ASSERT_TRUE(::stat(scratch_.path().c_str(), &of_scratch) == 0 && ::stat(pattern.c_str(), &of_memory) == 0);
    const bool is_other_disk = of_scratch.st_dev != of_memory.st_dev;
    if (is_other_disk) {
        EXPECT_EQ(store_.disk(), folder_);
        test::save(store_, 10, "s1", 1);
        test::save(store_, 20, "s2", 2);
        EXPECT_EQ(store_.set_aside_after(10), std::vector<fs::path>{folder_ / "set-aside" / "step-00000020"});
        EXPECT_TRUE(test::holds(folder_ / "set-aside" / "step-00000020", 2));
        EXPECT_EQ(listed(store_), Names{"step-00000010"});
    }
    fs::remove_all(pattern);
    if (!is_other_disk) GTEST_SKIP() << "/dev/shm and " << scratch_.path() << " are one disk";
}

TEST_F(StoreTest, BadSaveIdsAreBugs) {
    expect_error(ErrorKind::Bug, "save id", [&] { store_.begin(50, "../../x"); });
    expect_error(ErrorKind::Bug, "save id", [&] { store_.write_shard(50, "", 0, {}); });
    EXPECT_FALSE(fs::exists(folder_));
}

}  // namespace
}  // namespace vpp
