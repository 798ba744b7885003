#include "data/data_files.hpp"

#include <gmock/gmock.h>

#include "unit/data/support.hpp"

namespace vpp {
namespace {

using ::testing::ElementsAre;

TEST(DataFiles, AreThoseOfBothPartsWithTheirIndexes) {
    const test::TemporaryFolder folder;
    DataPlan data;
    data.train = {folder.write("a.bin", "1234"), folder.write("b.bin", "1234")};
    data.val = {folder.write("c.bin", "1234")};
    const std::string index = folder.write("b.idx", "");
    EXPECT_THAT(data_files(data), ElementsAre(data.train[0], data.train[1], index, data.val[0]));
}

TEST(DataFiles, OfArraysHaveNoNamesOfArrays) {
    DataPlan data;
    data.train_fields = {{"x", "d.npz:a"}, {"y", "y.npy"}};
    data.val_fields = {{"x", "v.safetensors:x"}, {"y", "w.npz"}};
    EXPECT_THAT(data_files(data), ElementsAre("d.npz", "y.npy", "v.safetensors", "w.npz"));
}

}  // namespace
}  // namespace vpp
