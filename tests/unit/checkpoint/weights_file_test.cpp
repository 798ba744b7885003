#include "checkpoint/weights_file.hpp"

#include <sys/stat.h>

#include "base/random.hpp"
#include "samples.hpp"

namespace vpp {
namespace {

using test::expect_error;
namespace fs = std::filesystem;

class WeightsFileTest : public testing::Test {
  protected:
    WeightsFileTest() : path_(scratch_.path() / "w.safetensors") {}

    void write() const {
        const test::SampleState state(3);
        std::vector<TensorBytes> tensors = state.tensors();
        for (TensorBytes& tensor : tensors) tensor.name = tensor.name.substr(tensor.name.find('.') + 1);
        write_weights(path_, tensors, {{{"step", "7"}, {"samples", "224"}}, {{"head.weight", "h.0.weight"}}});
    }

    /// "a" = 1 in one.safetensors, "b" = 2 and "unlisted" = 3 in two.safetensors, and an index.
    fs::path write_index(const std::string& weight_map) const {
        const std::vector<float> values{1, 2, 3};
        const auto tensor = [&](const char* name, size_t i) {
            return TensorBytes{name, DType::F32, {}, std::as_bytes(std::span(values).subspan(i, 1))};
        };
        write_safetensors(scratch_.path() / "one.safetensors", {tensor("a", 0)}, {});
        write_safetensors(scratch_.path() / "two.safetensors", {tensor("b", 1), tensor("unlisted", 2)}, {});
        const fs::path index = scratch_.path() / "model.safetensors.index.json";
        test::write_file(index, R"({"metadata": {}, "weight_map": {)" + weight_map + "}}");
        return index;
    }

    test::ScratchFolder scratch_;
    fs::path path_;
};

TEST_F(WeightsFileTest, GivesBackWhatWasWritten) {
    write();
    const WeightsFile file(path_);
    EXPECT_NO_THROW(file.verify());
    EXPECT_EQ(file.names().size(), 4u);
    EXPECT_EQ(file.step(), "7");
    EXPECT_EQ(file.checkpoint(), nullptr);
    ASSERT_TRUE(file.find("h.0.weight"));
    EXPECT_EQ(file.find("h.0.weight")->shape, (std::vector<int64_t>{3, 5}));
    EXPECT_FALSE(file.find("model.h.0.weight"));
    // What other programs look at.
    const SafetensorsFile plain(path_);
    EXPECT_EQ(plain.metadata().at("format"), "pt");
    EXPECT_EQ(plain.metadata().at("head.weight"), "h.0.weight");
    EXPECT_EQ(plain.metadata().at("samples"), "224");
}

TEST_F(WeightsFileTest, EveryFlippedBitOfTensorsIsFound) {
    write();
    const std::string good = test::read_file(path_);
    size_t header_bytes = 0;
    std::memcpy(&header_bytes, good.data(), sizeof header_bytes);
    const size_t begin = sizeof header_bytes + header_bytes;
    for (uint64_t i = 0; i < 300; ++i) {
        const uint64_t bit = begin * 8 + combine_key(5, i) % ((good.size() - begin) * 8);
        std::string bad = good;
        bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
        test::write_file(path_, bad);
        expect_error(ErrorKind::BadData, "damaged", [&] { WeightsFile(path_).verify(); });
    }
}

TEST_F(WeightsFileTest, DamageNamesBothChecksumsAndTheWayAroundThem) {
    const test::SampleState state(3);
    write_safetensors(path_, state.tensors(), {{"weights_xxh3_128", "another"}});
    expect_error(ErrorKind::BadData, path_.string() + ": damaged: the checksum of its tensors is ",
                 [&] { WeightsFile(path_).verify(); });
    expect_error(ErrorKind::BadData,
                 ", its metadata has another; when a program changed it on purpose, let it leave out the metadata "
                 "'weights_xxh3_128'",
                 [&] { WeightsFile(path_).verify(); });
}

TEST_F(WeightsFileTest, AFileOfAnotherWriterHasNoChecksum) {
    const test::SampleState state(3);
    write_safetensors(path_, state.tensors(), {{"format", "pt"}});
    const WeightsFile file(path_);
    EXPECT_NO_THROW(file.verify());
    EXPECT_FALSE(file.step());
    EXPECT_TRUE(file.find("model.mask"));  // names as they are
}

TEST_F(WeightsFileTest, ACheckpointGivesItsModelAlone) {
    CheckpointStore store(scratch_.path());
    const fs::path checkpoint = test::save(store, 50, "s50", 1);
    const WeightsFile file(checkpoint);
    EXPECT_NO_THROW(file.verify());
    EXPECT_EQ(file.names().size(), 6u);  // of eight, two are the optimizer's
    EXPECT_TRUE(file.find("mask.1"));
    EXPECT_FALSE(file.find("h.0.weight.step.1"));
    EXPECT_EQ(file.step(), "50");
    ASSERT_NE(file.checkpoint(), nullptr);
    EXPECT_EQ(file.checkpoint()->manifest().state.samples, 50 * 32);

    std::string text = test::read_file(checkpoint / "shard-00000.safetensors");
    text.back() = static_cast<char>(text.back() ^ 4);
    test::write_file(checkpoint / "shard-00000.safetensors", text);
    expect_error(ErrorKind::BadData, "damaged", [&] { WeightsFile(checkpoint).verify(); });
}

const char* const kBoth = R"("b": "two.safetensors", "a": "one.safetensors")";

TEST_F(WeightsFileTest, AnIndexIsOneFileOfAllItLists) {
    const fs::path index = write_index(kBoth);
    for (const fs::path& path : {index, scratch_.path()}) {
        const WeightsFile file(path);
        EXPECT_EQ(file.path(), index);
        EXPECT_EQ(file.names(), (std::vector<std::string>{"a", "b"}));
        for (const auto& [name, expected] : {std::pair("a", 1.0f), {"b", 2.0f}}) {
            float value = 0;
            std::memcpy(&value, file.find(name)->bytes.data(), sizeof value);
            EXPECT_EQ(value, expected);
        }
        EXPECT_FALSE(file.find("unlisted"));
        EXPECT_FALSE(file.step());
        EXPECT_NO_THROW(file.verify());
    }
}

TEST_F(WeightsFileTest, EveryFileOfAnIndexIsChecked) {
    const fs::path index = write_index(R"("a": "one.safetensors", "b": "one.safetensors")");
    expect_error(ErrorKind::BadData,
                 index.string() + ": names one.safetensors as the file of tensor 'b', which it has not",
                 [&] { WeightsFile{index}; });
    write_index(kBoth);
    const fs::path two = scratch_.path() / "two.safetensors";
    write_safetensors(two, {{"b", DType::U8, {0}, {}}}, {{"weights_xxh3_128", "another"}});
    expect_error(ErrorKind::BadData, two.string() + ": damaged", [&] { WeightsFile(index).verify(); });
    test::write_file(two, "cut off");
    expect_error(ErrorKind::BadData, two.string(), [&] { WeightsFile{index}; });
    fs::remove(two);
    expect_error(ErrorKind::MissingInput, two.string(), [&] { WeightsFile{index}; });
    ASSERT_EQ(::mkfifo(two.c_str(), 0600), 0);
    expect_error(ErrorKind::BadData, two.string() + " is not a regular file", [&] { WeightsFile{index}; });
}

TEST_F(WeightsFileTest, FilesOfADownloadCacheAreLinks) {
    const fs::path index = write_index(kBoth);
    const fs::path one = scratch_.path() / "one.safetensors";
    fs::rename(one, scratch_.path() / "blob");
    fs::create_symlink("blob", one);
    EXPECT_TRUE(WeightsFile(index).find("a"));
}

TEST_F(WeightsFileTest, AFolderOfOneFileIsThatFile) {
    write();
    EXPECT_EQ(WeightsFile(scratch_.path()).path(), path_);
}

TEST_F(WeightsFileTest, APartOfACheckpointIsNone) {
    CheckpointStore store(scratch_.path());
    const fs::path checkpoint = test::save(store, 50, "s50", 1);
    fs::remove(checkpoint / "manifest.json");
    fs::remove(checkpoint / "shard-00001.safetensors");
    for (const fs::path& path : {checkpoint, checkpoint / "shard-00000.safetensors"}) {
        expect_error(ErrorKind::BadData, "is a part of a checkpoint; name the folder that has its manifest.json",
                     [&] { WeightsFile{path}; });
    }
}

TEST_F(WeightsFileTest, WhatIsNoneIsRefused) {
    expect_error(ErrorKind::MissingInput, "nothing.safetensors",
                 [&] { WeightsFile(scratch_.path() / "nothing.safetensors"); });
    expect_error(ErrorKind::MissingInput, "no manifest.json", [&] { WeightsFile{scratch_.path()}; });
    test::write_file(path_, "PK\3\4 a model file");
    expect_error(ErrorKind::BadData, path_.string(), [&] { WeightsFile{path_}; });
}

}  // namespace
}  // namespace vpp
