#include "checkpoint/part.hpp"

#include "samples.hpp"
#include "support/disk_calls.hpp"

namespace vpp {
namespace {

using test::expect_error;
namespace fs = std::filesystem;

/// A run folder with a checkpoint of step 50 in two shards, and an empty one.
class PartTest : public testing::Test {
  protected:
    PartTest()
        : store_(scratch_.path() / "a"),
          whole_(test::save(store_, 50, "s50", 1)),
          manifest_(CheckpointReader(whole_).manifest()),
          other_(scratch_.path() / "b" / "checkpoints" / "step-00000050") {}

    /// The bytes of a shard into the other folder, in two pieces.
    void bring(size_t shard, const std::string& text) const {
        ArrivingShard arriving(other_, manifest_.shards[shard]);
        const Bytes bytes = to_bytes(text);
        arriving.add(std::span(bytes).first(bytes.size() / 2));
        arriving.add(std::span(bytes).subspan(bytes.size() / 2));
        arriving.finish();
    }
    std::string bytes_of_shard(size_t shard) const { return test::read_file(whole_ / manifest_.shards[shard].file); }
    bool is_clean() const {
        return std::distance(fs::directory_iterator(other_.parent_path()), fs::directory_iterator()) == 1;
    }

    test::ScratchFolder scratch_;
    CheckpointStore store_;
    fs::path whole_;
    Manifest manifest_;
    fs::path other_;
};

TEST_F(PartTest, AFolderIsFilledShardByShard) {
    write_part(other_, manifest_);
    EXPECT_EQ(test::read_file(other_ / "manifest.json"), test::read_file(whole_ / "manifest.json"));
    EXPECT_EQ(look_at_part(other_).manifest->save_id, "s50");
    bring(1, bytes_of_shard(1));
    const CheckpointReader part(other_, {manifest_.shards[1].file});
    EXPECT_EQ(part.names().size(), 4u);
    EXPECT_TRUE(part.contains("model.mask.1"));
    EXPECT_FALSE(part.contains("model.mask.0"));
    part.verify();
    expect_error(ErrorKind::BadData, "shard-00000.safetensors: is missing: this folder holds 1 of 2 shards",
                 [&] { CheckpointReader(other_).names(); });
    bring(0, bytes_of_shard(0));
    EXPECT_TRUE(test::holds(other_, 1));
    EXPECT_TRUE(is_clean());
}

TEST_F(PartTest, ALinkInPlaceOfAFolderIsNoPart) {
    test::save(store_, 40, "s40", 1);
    const fs::path away = scratch_.path() / "away";
    fs::rename(whole_, away);
    fs::create_directory_symlink(away, whole_);
    const std::vector<CheckpointPart> parts = parts_of_run(store_);
    ASSERT_EQ(parts.size(), 2u);
    EXPECT_EQ(parts[0].step, 50);
    EXPECT_FALSE(parts[0].manifest);
    EXPECT_TRUE(parts[0].damage.bars_older);
    EXPECT_TRUE(parts[0].damage.text.starts_with(whole_.string() + ": is a symbolic link")) << parts[0].damage.text;
    EXPECT_EQ(parts[1].manifest->save_id, "s40");
    EXPECT_EQ(look_at_part(whole_).manifest->save_id, "s50") << "who names a link means what it leads to";
}

// As in a save: what a loss of power leaves is whole, or has no name of its own.
TEST_F(PartTest, WhatIsBroughtIsOnTheDiskBeforeItHasItsName) {
    test::DiskCalls calls(scratch_.path());
    write_part(other_, manifest_);
    const std::string parent = "b/checkpoints", folder = parent + "/step-00000050";
    const std::string temporary = parent + "/.tmp-step-00000050-s50";
    EXPECT_EQ(calls.take(), (std::vector<std::string>{"fsync " + temporary + "/manifest.json", "fsync " + temporary,
                                                      "rename " + temporary + " to " + folder, "fsync " + parent}));
    bring(1, bytes_of_shard(1));
    const std::string shard = "shard-00001.safetensors", arriving = parent + "/.tmp-step-00000050-" + shard;
    EXPECT_EQ(calls.take(),
              (std::vector<std::string>{"fsync " + arriving, "rename " + arriving + " to " + folder + "/" + shard,
                                        "fsync " + folder}));
}

TEST_F(PartTest, AShardTakesThePlaceOfADamagedOne) {
    write_part(other_, manifest_);
    test::write_file(other_ / manifest_.shards[0].file, "damaged");
    bring(0, bytes_of_shard(0));
    bring(1, bytes_of_shard(1));
    EXPECT_TRUE(test::holds(other_, 1));
}

TEST_F(PartTest, WhatArrivesDamagedShortOrLongIsNotTaken) {
    write_part(other_, manifest_);
    const std::string good = bytes_of_shard(0);
    std::string flipped = good;
    flipped[flipped.size() / 3] ^= 1;
    const std::string shard = (other_ / manifest_.shards[0].file).string(), size = std::to_string(good.size());
    expect_error(ErrorKind::BadData,
                 shard + ": arrived damaged: " + size + " bytes with the checksum " + to_hex(hash_text(flipped)) +
                     ", the manifest has " + size + " with " + to_hex(manifest_.shards[0].digest),
                 [&] { bring(0, flipped); });
    expect_error(ErrorKind::BadData, "arrived damaged", [&] { bring(0, good.substr(1)); });
    expect_error(ErrorKind::BadData, shard + ": more bytes arrived than the manifest has (" + size + ")",
                 [&] { bring(0, good + "x"); });
    EXPECT_FALSE(fs::exists(other_ / manifest_.shards[0].file));
    EXPECT_TRUE(is_clean());
    bring(0, good);
    EXPECT_TRUE(fs::exists(other_ / manifest_.shards[0].file));
}

TEST_F(PartTest, WhatHasNoRoomOrNoNameIsSaid) {
    write_part(other_, manifest_);
    ShardRecord huge = manifest_.shards[0];
    huge.size_bytes = uint64_t{1} << 62;
    const std::string shard = (other_ / huge.file).string();
    expect_error(ErrorKind::Io, "there is no room for " + shard + ": it takes 4096.0 PiB, and ",
                 [&] { ArrivingShard(other_, huge); });
    fs::create_directory(shard);
    expect_error(ErrorKind::Io, " to " + shard + ": Is a directory", [&] { bring(0, bytes_of_shard(0)); });
    expect_error(ErrorKind::Io, "cannot rename " + other_.parent_path().string() + "/.tmp-step-00000050-",
                 [&] { bring(0, bytes_of_shard(0)); });
    EXPECT_TRUE(is_clean());
}

TEST_F(PartTest, ANameThatIsTakenStaysAsItIs) {
    fs::create_directories(other_);
    test::write_file(other_ / "mine", "x");
    expect_error(ErrorKind::BadData,
                 other_.string() +
                     " is in the way of the checkpoint of step 50 that other hosts of the job hold; "
                     "move it away",
                 [&] { write_part(other_, manifest_); });
    EXPECT_EQ(test::read_file(other_ / "mine"), "x");
}

TEST_F(PartTest, LooksAtWhatCannotBeRead) {
    EXPECT_EQ(look_at_part(other_).damage.kind, ErrorKind::MissingInput);
    fs::create_directories(other_.parent_path());
    fs::copy(whole_, other_.parent_path() / "step-00000060");
    EXPECT_NE(look_at_part(other_.parent_path() / "step-00000060").damage.text.find("holds step 50"),
              std::string::npos);
    test::write_file(whole_ / "manifest.json", "{}");
    const CheckpointPart part = look_at_part(whole_);
    EXPECT_EQ(part.step, 50);
    EXPECT_FALSE(part.manifest);
    EXPECT_EQ(part.damage.kind, ErrorKind::BadData);
    EXPECT_EQ(parts_of_run(store_).size(), 1u);
}

}  // namespace
}  // namespace vpp
