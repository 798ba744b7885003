#include "data/ranges.hpp"

#include <algorithm>

#include "unit/data/support.hpp"

namespace vpp {
namespace {

using test::error_of;
using test::npy;
using test::raw;
using test::read_values;
using test::TemporaryFolder;

std::unique_ptr<Dataset> labels(const TemporaryFolder& folder) {
    Plan plan;
    plan.data.kind = "arrays";
    plan.data.train_fields = {{"x", folder.write("x.npy", npy("<f4", "(4,)", raw<float>({-5, 99, 0, 0})))},
                              {"label", folder.write("l.npy", npy("<i8", "(4,)", raw<int64_t>({0, 9, 10, -100})))}};
    return open_dataset(plan, Subset::Train);
}

ValueRange label_range(int64_t bound, std::optional<int64_t> ignore_index = std::nullopt) {
    return {"label", bound, "number of classes", ignore_index};
}

TEST(Ranges, AValueOutsideIsNamedWithFileAndSample) {
    const TemporaryFolder folder;
    const auto data = with_ranges(labels(folder), {label_range(10)});
    EXPECT_EQ(data->fields().fields[1].bound, 10);
    EXPECT_EQ(read_values<int64_t>(*data, 0, 1), std::vector<int64_t>{0});
    EXPECT_EQ(read_values<int64_t>(*data, 1, 1), std::vector<int64_t>{9});
    const std::string text = error_of(ErrorKind::BadData, [&] { read_values<int64_t>(*data, 2, 1); });
    EXPECT_HAS(text, folder.path("l.npy") + ", sample 2: field label must be in [0, 10)");
    EXPECT_HAS(text, "number of classes (got 10); try a model with a larger one, or mend the data");
    error_of(ErrorKind::BadData, [&] { read_values<int64_t>(*data, 3, 1); });
}

TEST(Ranges, TheIgnoredValueIsLegal) {
    const TemporaryFolder folder;
    const auto data = with_ranges(labels(folder), {label_range(10, -100)});
    EXPECT_EQ(read_values<int64_t>(*data, 3, 1), std::vector<int64_t>{-100});
    EXPECT_EQ(data->fields().fields[1].bound, 0);
    EXPECT_HAS(error_of(ErrorKind::BadData, [&] { read_values<int64_t>(*data, 2, 1); }), "or ignore_index -100");
}

TEST(Ranges, ValuesMayCountFromTheEnd) {
    const TemporaryFolder folder;
    const ValueRange range{"label", 10, "rows", {}, -10};
    const auto data = with_ranges(labels(folder), {range});
    EXPECT_EQ(data->fields().fields[1].bound, 0);
    EXPECT_HAS(error_of(ErrorKind::BadData, [&] { read_values<int64_t>(*data, 3, 1); }),
               "must be in [-10, 10), the rows (got -100)");
    const auto both = with_ranges(labels(folder), {range, label_range(200, -100)});
    error_of(ErrorKind::BadData, [&] { read_values<int64_t>(*both, 2, 1); });
    const auto from_zero = with_ranges(labels(folder), {{"label", 200, "rows", {}, -200}, label_range(200)});
    error_of(ErrorKind::BadData, [&] { read_values<int64_t>(*from_zero, 3, 1); });
}

TEST(Ranges, OfSeveralRangesOfAFieldEachIsHeld) {
    const TemporaryFolder folder;
    const std::vector<ValueRange> some{label_range(10, -100), label_range(20, -100), label_range(12)};
    std::vector<ValueRange> ranges = some;
    do {
        const auto data = with_ranges(labels(folder), ranges);
        EXPECT_EQ(read_values<int64_t>(*data, 1, 1), std::vector<int64_t>{9});
        EXPECT_HAS(error_of(ErrorKind::BadData, [&] { read_values<int64_t>(*data, 2, 1); }), "must be in [0, 10)");
        EXPECT_HAS(error_of(ErrorKind::BadData, [&] { read_values<int64_t>(*data, 3, 1); }), "must be in [0, 12),");
        std::rotate(ranges.begin(), ranges.begin() + 1, ranges.end());
    } while (ranges[0].bound != some[0].bound);
}

TEST(Ranges, OtherFieldsAndWithoutARangeNothingIsChecked) {
    const TemporaryFolder folder;
    const auto bare = labels(folder);
    EXPECT_EQ(read_values<int64_t>(*bare, 2, 1), std::vector<int64_t>{10});
    const auto data = with_ranges(labels(folder), {label_range(10)});
    EXPECT_EQ(read_values<float>(*data, 1, 0), std::vector<float>{99});
    EXPECT_EQ(data->digest(), bare->digest());
    Plan split;
    split.data.kind = "text";
    split.data.sequence_length = 1;
    split.data.val_split = 0.5;
    split.data.train = {folder.write("t", std::string(21, 'x'))};
    const int64_t stored = open_dataset(split, Subset::Train)->stored_sample(9);
    EXPECT_GE(stored, 18);
    EXPECT_EQ(with_ranges(open_dataset(split, Subset::Train), {})->stored_sample(9), stored);
}

TEST(Ranges, AProvenBoundCostsNothingAndALargerOneIsChecked) {
    const TemporaryFolder folder;
    Plan plan;
    plan.data.kind = "text";
    plan.data.train = {folder.write("a.txt", "ab~")};
    plan.data.sequence_length = 2;
    const auto proven = with_ranges(open_dataset(plan, Subset::Train), {{"targets", 300, "vocabulary size", {}}});
    EXPECT_EQ(proven->fields().fields[1].bound, 256);
    const auto checked = with_ranges(open_dataset(plan, Subset::Train), {{"targets", 100, "vocabulary size", {}}});
    EXPECT_EQ(read_values<int64_t>(*checked, 0, 0), (std::vector<int64_t>{'a', 'b'}));
    const std::string text = error_of(ErrorKind::BadData, [&] { read_values<int64_t>(*checked, 0, 1); });
    EXPECT_HAS(text, "field targets must be in [0, 100), the vocabulary size (got 126)");
}

TEST(Ranges, EveryIntegerDtypeIsUnderstood) {
    const auto refused = [](DType dtype, const auto& values) {
        const Field field{"x", dtype, {2}, 0};
        const ValueRange range{"x", 100, "limit", {}};
        error_of(ErrorKind::BadData, [&] { check_range(field, range, std::as_bytes(std::span(values)), "here"); });
    };
    refused(DType::I64, std::vector<int64_t>{1, -1});
    refused(DType::I32, std::vector<int32_t>{1, 100});
    refused(DType::I16, std::vector<int16_t>{1, -7});
    refused(DType::I8, std::vector<int8_t>{1, -1});
    refused(DType::U8, std::vector<uint8_t>{1, 200});
    refused(DType::U16, std::vector<uint16_t>{1, 50000});
    refused(DType::U32, std::vector<uint32_t>{1, 4'000'000'000});
}

TEST(Ranges, ImpossibleRangesAreBugs) {
    const TemporaryFolder folder;
    error_of(ErrorKind::Bug, [&] { with_ranges(labels(folder), {{"nothing", 10, "limit", {}}}); });
    error_of(ErrorKind::Bug, [&] { with_ranges(labels(folder), {{"x", 10, "limit", {}}}); });
    error_of(ErrorKind::Bug, [&] { with_ranges(labels(folder), {label_range(0)}); });
}

}  // namespace
}  // namespace vpp
