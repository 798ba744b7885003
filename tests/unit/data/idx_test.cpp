#include "unit/data/idx_files.hpp"
#include "unit/data/support.hpp"

namespace vpp {
namespace {

using test::idx;
using test::read_values;

Plan idx_plan(NamedTexts train) {
    return test::table_plan("idx", std::move(train));
}

TEST(Idx, PicturesAndLabels) {
    const test::TemporaryFolder folder;
    const std::string pixels{'\x00', '\xff', '\x64', '\x00', '\x01', '\x00', '\x00', '\xff'};
    const auto data = open_dataset(idx_plan({{"image", folder.write("images", idx(0x08, {2, 2, 2}, pixels))},
                                             {"label", folder.write("labels", idx(0x08, {2}, "\x07\xff"))}}),
                                   Subset::Train);
    const Fields& fields = data->fields();
    EXPECT_EQ(fields.num_samples, 2);
    EXPECT_EQ(fields.fields[0].name, "image");
    EXPECT_EQ(fields.fields[0].dtype, DType::F32);
    EXPECT_EQ(fields.fields[0].shape, (std::vector<int64_t>{1, 2, 2}));
    EXPECT_EQ(fields.fields[1].dtype, DType::I64);
    EXPECT_EQ(fields.fields[1].shape, std::vector<int64_t>{});
    EXPECT_EQ(fields.fields[1].bound, 256);
    EXPECT_EQ(read_values<float>(*data, 0, 0), (std::vector<float>{0, 1, 100.0f / 255, 0}));
    EXPECT_EQ(read_values<float>(*data, 1, 0), (std::vector<float>{1.0f / 255, 0, 0, 1}));
    EXPECT_EQ(read_values<int64_t>(*data, 0, 1), std::vector<int64_t>{7});
    EXPECT_EQ(read_values<int64_t>(*data, 1, 1), std::vector<int64_t>{255});
    EXPECT_EQ(data->where(1, 0), folder.path("images") + ", sample 1");
}

TEST(Idx, PicturesWithChannelsKeepTheirDims) {
    const test::TemporaryFolder folder;
    const std::string path = folder.write("images", idx(0x08, {1, 3, 2, 1}, "abcdef"));
    EXPECT_EQ(open_dataset(idx_plan({{"x", path}}), Subset::Train)->fields().fields[0].shape,
              (std::vector<int64_t>{3, 2, 1}));
}

TEST(Idx, OtherTypesAreAsTheyAre) {
    const test::TemporaryFolder folder;
    const auto data =
        open_dataset(idx_plan({{"f", folder.write("f", idx(0x0D, {1, 2}, std::string("\x3f\xc0\0\0\xc0\0\0\0", 8)))},
                               {"d", folder.write("d", idx(0x0E, {1}, std::string("\x3f\xf8\0\0\0\0\0\0", 8)))},
                               {"s", folder.write("s", idx(0x0B, {1, 1}, "\x01\x02"))},
                               {"i", folder.write("i", idx(0x0C, {1}, "\xff\xff\xff\xfe"))},
                               {"c", folder.write("c", idx(0x09, {1, 1}, "\xff"))}}),
                     Subset::Train);
    EXPECT_EQ(read_values<float>(*data, 0, 0), (std::vector<float>{1.5, -2}));
    EXPECT_EQ(read_values<double>(*data, 0, 1), std::vector<double>{1.5});
    EXPECT_EQ(read_values<int16_t>(*data, 0, 2), std::vector<int16_t>{0x0102});
    EXPECT_EQ(read_values<int32_t>(*data, 0, 3), std::vector<int32_t>{-2});
    EXPECT_EQ(read_values<int8_t>(*data, 0, 4), std::vector<int8_t>{-1});
    EXPECT_EQ(data->fields().fields[3].bound, 0);
}

TEST(Idx, AFileThatIsNoneIsNamed) {
    const test::TemporaryFolder folder;
    const std::string path = folder.write("images.gz", "\x1f\x8b\x08\x08");
    EXPECT_EQ(test::error_of(ErrorKind::BadData,
                             [&] {
                                 open_dataset(idx_plan({{"image", path}}), Subset::Train);
                             }),
              path + ": compressed; unpack it with gunzip");
}

}  // namespace
}  // namespace vpp
