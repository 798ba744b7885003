#include "data/safetensors_array.hpp"

#include "base/safetensors_header.hpp"
#include "unit/data/support.hpp"

namespace vpp::detail {
namespace {

TEST(SafetensorsArray, ATensorIsFoundWhereItLies) {
    const test::TemporaryFolder folder;
    const std::vector<float> x{1, 2, 3, 4};
    const std::vector<int64_t> y{7, 8};
    const TensorBytes tensors[] = {{"x", DType::F32, {2, 2}, std::as_bytes(std::span(x))},
                                   {"y", DType::I64, {2}, std::as_bytes(std::span(y))}};
    const std::string header = make_safetensors_header({&tensors[0], &tensors[1]}, {});
    const std::string bytes = header + test::raw(x) + test::raw(y);
    const InputFile file(folder.write("d.safetensors", bytes));
    const ArrayPlace place = find_in_safetensors(file, "y");
    EXPECT_EQ(place.dtype, DType::I64);
    EXPECT_EQ(place.shape, std::vector<int64_t>{2});
    int64_t first = 0;
    file.read(place.offset_bytes, std::as_writable_bytes(std::span(&first, 1)));
    EXPECT_EQ(first, 7);
    const std::vector<FoundArray> arrays = arrays_of_safetensors(file);
    ASSERT_EQ(arrays.size(), 2U);
    EXPECT_EQ(arrays[0].name, "x");
    EXPECT_EQ(arrays[0].place->shape, (std::vector<int64_t>{2, 2}));
    EXPECT_EQ(arrays[1].place->offset_bytes, place.offset_bytes);
    EXPECT_HAS(test::error_of(ErrorKind::BadData, [&] { find_in_safetensors(file, "z"); }),
               "d.safetensors: it has no array 'z' (it has x, y); ");
}

TEST(SafetensorsArray, DamagedFilesAreRefused) {
    const test::TemporaryFolder folder;
    const auto refusal = [&](const std::string& bytes) {
        const InputFile file(folder.write("d.safetensors", bytes));
        return test::error_of(ErrorKind::BadData, [&] { find_in_safetensors(file, "x"); });
    };
    EXPECT_HAS(refusal("short"), "d.safetensors: only 5 bytes, too short for a safetensors file");
    EXPECT_HAS(refusal(std::string(8, '\xff')), "a header of 18446744073709551615 bytes, at most 100000000 are read");
    EXPECT_HAS(refusal(test::raw<uint64_t>({99}) + "{}"), "a header of 99 bytes in a file of 10");
    EXPECT_HAS(refusal(test::raw<uint64_t>({2}) + "{}x"), "the tensors end at byte 10 of 11");
}

}  // namespace
}  // namespace vpp::detail
