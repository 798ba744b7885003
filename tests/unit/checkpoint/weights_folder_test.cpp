#include "checkpoint/weights_folder.hpp"

#include "samples.hpp"

namespace vpp {
namespace {

using test::expect_error;

class WeightsFolderTest : public testing::Test {
  protected:
    void touch(const std::string& name) const { test::write_file(scratch_.path() / name, ""); }
    std::string found() const { return weights_in(scratch_.path()).filename().string(); }

    test::ScratchFolder scratch_;
};

TEST_F(WeightsFolderTest, OneFileIsTaken) {
    touch("config.json");
    touch("model.safetensors");
    EXPECT_EQ(found(), "model.safetensors");
}

TEST_F(WeightsFolderTest, AnIndexStandsForItsFiles) {
    touch("model-00001-of-00002.safetensors");
    touch("model-00002-of-00002.safetensors");
    touch("model.safetensors.index.json");
    EXPECT_EQ(found(), "model.safetensors.index.json");
}

TEST_F(WeightsFolderTest, NothingIsGuessed) {
    const std::string folder = scratch_.path().string();
    touch("config.json");
    expect_error(ErrorKind::MissingInput,
                 folder +
                     " holds no weights: no manifest.json of a checkpoint (a folder like checkpoints/step-00000050), "
                     "no *.safetensors.index.json and no *.safetensors",
                 [&] { found(); });
    touch("b.safetensors");
    touch("a.safetensors");
    expect_error(ErrorKind::BadData,
                 folder +
                     " has no manifest.json of a checkpoint, but several files of weights: 'a.safetensors', "
                     "'b.safetensors'; name one of them",
                 [&] { found(); });
    touch("model.safetensors.index.json");
    touch("model.safetensors.index.fp16.json");
    expect_error(ErrorKind::BadData,
                 "weights: 'model.safetensors.index.fp16.json', 'model.safetensors.index.json'; name",
                 [&] { found(); });
}

TEST_F(WeightsFolderTest, AFolderThatIsNotThereHoldsNone) {
    expect_error(ErrorKind::MissingInput, "gone holds no weights", [&] { weights_in(scratch_.path() / "gone"); });
}

}  // namespace
}  // namespace vpp
