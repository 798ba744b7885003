#include "data/npz.hpp"

#include "unit/data/support.hpp"
#include "unit/data/zip_files.hpp"

namespace vpp::detail {
namespace {

using test::npy;
using test::raw;

class Npz : public testing::Test {
  protected:
    std::string path(const std::string& bytes) const { return folder_.write("d.npz", bytes); }

    std::string refusal(const std::string& bytes, const std::string& name) const {
        const InputFile file(path(bytes));
        const std::string text = test::error_of(ErrorKind::BadData, [&] { find_in_npz(file, name); });
        EXPECT_TRUE(text.starts_with(file.path().string())) << text;
        return text.substr(file.path().string().size());
    }

    test::TemporaryFolder folder_;
};

TEST_F(Npz, AnArrayIsFoundWhereItLies) {
    const InputFile file(path(test::zip_file({{"y.npy", npy("<i8", "(1,)", raw<int64_t>({7}))},
                                              {"x.npy", npy("<f4", "(3, 2)", raw<float>({1, 2, 3, 4, 5, 6}))}})));
    const ArrayPlace place = find_in_npz(file, "x");
    EXPECT_EQ(place.dtype, DType::F32);
    EXPECT_EQ(place.shape, (std::vector<int64_t>{3, 2}));
    float values[6];
    file.read(place.offset_bytes, std::as_writable_bytes(std::span(values)));
    EXPECT_EQ(values[0], 1);
    EXPECT_EQ(values[5], 6);
    EXPECT_EQ(find_in_npz(file, "y").dtype, DType::I64);
}

TEST_F(Npz, AnArrayThatCannotBeReadKeepsNoOtherFromBeingFound) {
    const std::string x = npy("<f4", "(1,)", raw<float>({1}));
    const InputFile file(path(test::zip_file(
        {{"x.npy", x}, {"words.npy", npy("<U1", "(1,)", "abcd")}, {"text", "t"}, {"packed.npy", x, 8}, {"y.npy", x}})));
    const std::vector<FoundArray> arrays = arrays_of_npz(file);
    ASSERT_EQ(arrays.size(), 4U);
    EXPECT_EQ(arrays[0].name, "x");
    EXPECT_EQ(arrays[0].place->shape, std::vector<int64_t>{1});
    EXPECT_EQ(arrays[0].place->offset_bytes, find_in_npz(file, "x").offset_bytes);
    EXPECT_FALSE(arrays[1].place);
    EXPECT_HAS(arrays[1].problem, "d.npz:words: unknown dtype (got '<U1'");
    EXPECT_HAS(arrays[2].problem, "d.npz:packed: compressed");
    EXPECT_EQ(arrays[3].place->offset_bytes, find_in_npz(file, "y").offset_bytes);
}

TEST_F(Npz, OtherFilesAndArraysAreRefused) {
    const std::string x = npy("<f4", "(1,)", raw<float>({1}));
    EXPECT_HAS(refusal(x, "x"), ": not a zip file");
    EXPECT_HAS(refusal(test::zip_file({{"x.npy", x}, {"text", "t"}}), "z"), ": it has no array 'z' (it has x); ");
    EXPECT_EQ(refusal(test::zip_file({{"x", x}}), "x"), ": it has no arrays");
    EXPECT_EQ(refusal(test::zip_file({{"x.npy", x, 8}}), "x"),
              ":x: compressed, so that no sample can be read alone; try np.savez, not np.savez_compressed");
    EXPECT_HAS(refusal(test::zip_file({{"x.npy", x.substr(0, x.size() - 1)}}), "x"),
               ":x: the .npy header does not fit the file (got shape [1] of float32, and 3 bytes of data)");
    EXPECT_EQ(refusal(test::zip_file({{"x.npy", ""}}), "x"), ":x: the file is empty");
    EXPECT_HAS(refusal(test::zip_file({{"x.npy", x, 0, 0, "y.npy"}}), "x"), "has another header");
}

}  // namespace
}  // namespace vpp::detail
