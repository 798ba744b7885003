#include <sys/stat.h>

#include "base/random.hpp"
#include "checkpoint/safetensors.hpp"
#include "samples.hpp"

namespace vpp {
namespace {

using test::expect_error;
namespace fs = std::filesystem;

/// A run folder with one checkpoint of step 50.
class ReaderTest : public testing::Test {
  protected:
    ReaderTest() : store_(scratch_.path()), checkpoint_(test::save(store_, 50, "s50", 1)) {}
    void verify() const { CheckpointReader(checkpoint_).verify(); }
    fs::path shard(int writer) const { return checkpoint_ / ("shard-0000" + std::to_string(writer) + ".safetensors"); }
    fs::path manifest() const { return checkpoint_ / "manifest.json"; }

    test::ScratchFolder scratch_;
    CheckpointStore store_;
    fs::path checkpoint_;
};

TEST_F(ReaderTest, GivesBackWhatWasSaved) {
    EXPECT_TRUE(test::holds(checkpoint_, 1));
    EXPECT_FALSE(test::holds(checkpoint_, 2));
    CheckpointReader first(checkpoint_);
    const CheckpointReader reader(std::move(first));
    EXPECT_EQ(reader.manifest().state.step, 50);
    EXPECT_EQ(reader.manifest().state.plan, test::sample_state(50).plan);
    EXPECT_TRUE(reader.contains("model.mask.1"));
    EXPECT_FALSE(reader.contains("model.mask"));
    EXPECT_EQ(reader.names().size(), 8u);
    EXPECT_EQ(reader.names().front(), "model.empty.0");
}

TEST_F(ReaderTest, MissingAndUnfitTensorsAreNamed) {
    const CheckpointReader reader(checkpoint_);
    expect_error(ErrorKind::BadData, "did you mean 'model.mask.1'", [&] { reader.tensor("model.mask.1x"); });
    expect_error(ErrorKind::BadData, "'model.mask.1' is bool[7], the model expects bool[8]",
                 [&] { reader.tensor("model.mask.1", DType::Bool, {8}); });
    expect_error(ErrorKind::BadData, "is bool[7], the model expects uint8[7]",
                 [&] { reader.tensor("model.mask.1", DType::U8, {7}); });
}

TEST_F(ReaderTest, RandomBitFlipsAreAllFound) {
    for (const fs::path& path : {shard(0), shard(1), manifest()}) {
        const std::string good = test::read_file(path);
        for (uint64_t i = 0; i < 300; ++i) {
            const uint64_t bit = combine_key(hash_text(path.filename().string()).low, i) % (good.size() * 8);
            std::string bad = good;
            bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
            test::write_file(path, bad);
            expect_error(ErrorKind::BadData, path.string(), [&] { verify(); });
        }
        test::write_file(path, good);
        EXPECT_NO_THROW(verify());
    }
}

// What of a checkpoint a host can give to others: every byte is looked at.
TEST_F(ReaderTest, AFlippedBitOfAShardIsToldByItsState) {
    const auto problems = [&] {
        std::vector<std::string> texts;
        for (const ShardState& state : CheckpointReader(checkpoint_).shard_states()) {
            EXPECT_TRUE(state.is_there);
            EXPECT_FALSE(state.may_be_whole);
            texts.push_back(state.problem);
        }
        return texts;
    };
    EXPECT_EQ(problems(), (std::vector<std::string>{"", ""}));
    std::string bytes = test::read_file(shard(1));
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    test::write_file(shard(1), bytes);
    EXPECT_EQ(problems()[0], "");
    EXPECT_TRUE(problems()[1].starts_with(shard(1).string() + ": damaged: its checksum is ")) << problems()[1];
}

TEST_F(ReaderTest, TruncationIsFoundAndTheByteNamed) {
    for (const fs::path& path : {shard(0), shard(1), manifest()}) {
        const std::string good = test::read_file(path);
        for (const size_t size : {size_t{0}, size_t{1}, good.size() / 2, good.size() - 1}) {
            test::write_file(path, good.substr(0, size));
            const std::string part =
                path == manifest() ? "" : ": cut off at byte " + std::to_string(size) + " (expected ";
            expect_error(ErrorKind::BadData, path.string() + part, [&] { verify(); });
        }
        test::write_file(path, good + "x");
        expect_error(ErrorKind::BadData, path.string(), [&] { verify(); });
        test::write_file(path, good);
    }
    EXPECT_NO_THROW(verify());
}

// Mapped, it would end the process.
TEST_F(ReaderTest, AShardThatIsCutOffWhileItIsVerifiedIsDamaged) {
    const Bytes bytes(9 << 20);
    const TensorBytes large{"model.large", DType::U8, {static_cast<int64_t>(bytes.size())}, bytes};
    store_.begin(60, "s60");
    checkpoint_ = store_.commit("s60", test::sample_state(60), {store_.write_shard(60, "s60", 0, {large})});
    int pieces = 0;
    const auto cut = [&](std::string_view point) {
        if (point == "verify.piece_read" && ++pieces == 1) fs::resize_file(shard(0), 5 << 20);
    };
    expect_error(ErrorKind::BadData, shard(0).string() + " ends at byte 5242880, but ",
                 [&] { CheckpointReader(checkpoint_).verify(cut); });
    EXPECT_EQ(pieces, 1);
}

TEST_F(ReaderTest, TellsWhetherShardsAreMissing) {
    EXPECT_FALSE(CheckpointReader(checkpoint_).lacks_shards());
    fs::remove(shard(1));
    EXPECT_TRUE(CheckpointReader(checkpoint_).lacks_shards());
}

TEST_F(ReaderTest, TheListOfFilesIsExact) {
    test::write_file(checkpoint_ / "shard-00002.safetensors", "");
    expect_error(ErrorKind::BadData, "shard-00002.safetensors: is not in the manifest's list", [&] { verify(); });
    fs::remove(checkpoint_ / "shard-00002.safetensors");
    fs::create_directory(checkpoint_ / "sub");
    expect_error(ErrorKind::BadData, "sub: is not in the manifest's list", [&] { verify(); });
    fs::remove(checkpoint_ / "sub");
    fs::rename(shard(1), scratch_.path() / "away");
    expect_error(ErrorKind::BadData, "shard-00001.safetensors: is missing", [&] { verify(); });
    fs::rename(scratch_.path() / "away", shard(1));
    EXPECT_NO_THROW(verify());
}

TEST_F(ReaderTest, SwappedShardsAreFound) {
    fs::rename(shard(0), scratch_.path() / "away");
    fs::rename(shard(1), shard(0));
    fs::rename(scratch_.path() / "away", shard(1));
    expect_error(ErrorKind::BadData, "shard-00000.safetensors: damaged", [&] { verify(); });
}

TEST_F(ReaderTest, ShardsOfAnotherStepAreFoundEvenWithoutChecksums) {
    const fs::path other = test::save(store_, 60, "s60", 1);
    fs::copy_file(other / shard(0).filename(), shard(0), fs::copy_options::overwrite_existing);
    expect_error(ErrorKind::BadData, "shard-00000.safetensors: damaged", [&] { verify(); });
    // Same size, well formed: opening it without verify finds the save id.
    expect_error(ErrorKind::BadData, "belongs to save 's60', the manifest to save 's50'",
                 [&] { CheckpointReader(checkpoint_).names(); });
}

TEST_F(ReaderTest, OneTensorInTwoShardsIsRefused) {
    store_.begin(70, "s70");
    const test::SampleState state(1);
    std::vector<ShardRecord> shards{store_.write_shard(70, "s70", 0, state.tensors()),
                                    store_.write_shard(70, "s70", 1, state.tensors())};
    const fs::path checkpoint = store_.commit("s70", test::sample_state(70), shards);
    expect_error(ErrorKind::BadData, "holds the tensor 'model.empty' that shard-00000.safetensors holds too",
                 [&] { CheckpointReader(checkpoint).verify(); });
}

TEST_F(ReaderTest, LinksAndPipesAreNotOpened) {
    fs::rename(shard(0), scratch_.path() / "away");
    fs::create_symlink(scratch_.path() / "away", shard(0));
    expect_error(ErrorKind::Refused, shard(0).string() + " is a symbolic link; a checkpoint holds plain files only",
                 [&] { verify(); });
    expect_error(ErrorKind::Refused, "is a symbolic link", [&] { CheckpointReader(checkpoint_).names(); });
    fs::remove(shard(0));
    ASSERT_EQ(::mkfifo(shard(0).c_str(), 0600), 0);
    expect_error(ErrorKind::BadData, "is not a plain file", [&] { verify(); });
    fs::remove(manifest());
    ASSERT_EQ(::mkfifo(manifest().c_str(), 0600), 0);
    expect_error(ErrorKind::BadData, "is not a plain file", [&] { verify(); });
    fs::remove(manifest());
    fs::create_symlink(scratch_.path() / "nowhere", manifest());
    expect_error(ErrorKind::Refused, "is a symbolic link", [&] { verify(); });
}

TEST_F(ReaderTest, AFolderThatWentAwayIsSaid) {
    const CheckpointReader reader(checkpoint_);
    fs::remove_all(checkpoint_);
    expect_error(ErrorKind::Io, "the folder " + checkpoint_.string() + " went away while it was read",
                 [&] { reader.verify(); });
}

TEST_F(ReaderTest, AFolderWithoutManifestIsNoCheckpoint) {
    expect_error(ErrorKind::MissingInput,
                 scratch_.path().string() +
                     " is not a checkpoint: it has no manifest.json; name a folder like "
                     "checkpoints/step-00000050",
                 [&] { CheckpointReader{scratch_.path()}; });
    expect_error(ErrorKind::MissingInput, "is not a checkpoint", [&] { CheckpointReader{scratch_.path() / "none"}; });
}

}  // namespace
}  // namespace vpp
