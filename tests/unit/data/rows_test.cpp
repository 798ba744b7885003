#include "data/rows.hpp"

#include "unit/data/support.hpp"

namespace vpp::detail {
namespace {

/// Rows of two bytes behind a first byte, which the field has the other way round.
RowFile open_pairs(const std::string& path, const std::string&) {
    InputFile file(path);
    const auto num_rows = static_cast<int64_t>((file.size_bytes() - 1) / 2);
    RowFile rows{std::move(file), {"", DType::U8, {2}, 0}, 1, num_rows, 2};
    rows.decode = [](std::span<const std::byte> stored, std::span<std::byte> out) {
        out[0] = stored[1];
        out[1] = stored[0];
    };
    return rows;
}

Plan pairs_plan(NamedTexts train) {
    return test::table_plan("pairs", std::move(train));
}

TEST(Rows, AreDecoded) {
    const test::TemporaryFolder folder;
    const auto data = open_rows(pairs_plan({{"x", folder.write("x", "-abcd")}}), Subset::Train, open_pairs);
    EXPECT_EQ(data->fields().num_samples, 2);
    EXPECT_EQ(data->fields().fields[0].name, "x");
    EXPECT_EQ(test::read_values<char>(*data, 1, 0), (std::vector<char>{'d', 'c'}));
}

TEST(Rows, ValuesAreReadAcrossThem) {
    const test::TemporaryFolder folder;
    RowFile rows{InputFile(folder.write("x", std::string("--\0\1\1\0\1\3", 8))), {"", DType::Bool, {2}, 0}, 2, 3, 2};
    std::vector<char> values(3);
    read_values(rows, 1, std::as_writable_bytes(std::span(values)));
    EXPECT_EQ(values, (std::vector<char>{1, 1, 0}));
    rows.array = "a";
    EXPECT_EQ(
        test::error_of(ErrorKind::BadData, [&] { read_values(rows, 3, std::as_writable_bytes(std::span(values))); }),
        folder.path("x") + ":a, sample 2: a bool is neither 0 nor 1; the file is damaged");
    rows.field.dtype = DType::I64;
    rows.decode = decode_labels;
    std::vector<int64_t> wide(2);
    read_values(rows, 4, std::as_writable_bytes(std::span(wide)));
    EXPECT_EQ(wide, (std::vector<int64_t>{1, 3}));
}

TEST(Rows, OfDifferentNumberAreRefused) {
    const test::TemporaryFolder folder;
    const Plan plan = pairs_plan({{"x", folder.write("x", "-abcd")}, {"y", folder.write("y", "-ab")}});
    EXPECT_EQ(test::error_of(ErrorKind::BadData, [&] { open_rows(plan, Subset::Train, open_pairs); }),
              folder.path("y") + ": all fields need the same number of samples (got 1, expected 2 as in " +
                  folder.path("x") + ")");
}

TEST(Rows, ThePlanNamesATable) {
    const Plan plan = pairs_plan({});
    EXPECT_EQ(test::error_of(ErrorKind::Plan, [&] { open_rows(plan, Subset::Train, open_pairs); }),
              "data.kind pairs needs the table data.train; try [data.train] image = \"image.npy\"");
    const test::TemporaryFolder folder;
    EXPECT_EQ(open_rows(pairs_plan({{"x", folder.write("x", "-ab")}}), Subset::Validation, open_pairs), nullptr);
}

}  // namespace
}  // namespace vpp::detail
