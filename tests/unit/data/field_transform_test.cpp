#include "data/field_transform.hpp"

#include <set>

#include "unit/data/support.hpp"

namespace vpp::detail {
namespace {

using Floats = std::vector<float>;

Plan plan_with(const TransformPlan& table) {
    Plan plan;
    plan.data.transforms = {table};
    return plan;
}

template <typename T>
Floats changed(const TransformPlan& table, const Field& field, const std::vector<T>& stored,
               std::optional<uint64_t> key = std::nullopt) {
    const FieldTransform transform(plan_with(table), 0, field);
    EXPECT_EQ(transform.field().dtype, DType::F32);
    Floats out(static_cast<size_t>(transform.field().bytes_per_sample()) / sizeof(float));
    transform.apply(std::as_bytes(std::span(stored)), key, std::as_writable_bytes(std::span(out)));
    return out;
}

std::string transform_error(const TransformPlan& table, const Field& field) {
    return test::error_of(ErrorKind::Plan, [&] { FieldTransform(plan_with(table), 0, field); });
}

TEST(FieldTransform, BytesByOne255thAreThoseOfADivision) {
    std::vector<uint8_t> all(256);
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint8_t>(i);
    const Floats scaled = changed({.field = "x", .scale = 0.00392156862745098}, {"x", DType::U8, {256}, 0}, all);
    for (int i = 0; i < 256; ++i) EXPECT_EQ(scaled[static_cast<size_t>(i)], static_cast<float>(i) / 255.0F);
}

TEST(FieldTransform, MeanAndStdAreOneOrAChannelEach) {
    const Field field{"x", DType::F32, {2, 2}, 0};
    const Floats values{1, 2, 3, 4};
    EXPECT_EQ(changed({.field = "x", .mean = {1}, .deviation = {2}}, field, values), (Floats{0, 0.5, 1, 1.5}));
    EXPECT_EQ(changed({.field = "x", .mean = {1, 3}, .deviation = {2, 4}}, field, values), (Floats{0, 0.5, 0, 0.25}));
    EXPECT_EQ(changed({.field = "x", .scale = 2, .mean = {1}, .deviation = {0.5}}, {"x", DType::I64, {}, 10},
                      std::vector<int64_t>{3}),
              Floats{10});
}

// What was below 10 may be anything now.
TEST(FieldTransform, NumbersThatChangeHaveNoBound) {
    const Field label{"x", DType::I64, {2, 2}, 10};
    EXPECT_EQ(FieldTransform(plan_with({.field = "x", .scale = 2}), 0, label).field().bound, 0);
    EXPECT_EQ(FieldTransform(plan_with({.field = "x", .flip = 0.5}), 0, label).field().bound, 10);
}

TEST(FieldTransform, EveryTypeOfNumberIsRead) {
    const auto minus = [](DType dtype, const auto& stored) {
        return changed({.field = "x", .mean = {1}, .deviation = {1}}, {"x", dtype, {2}, 0}, stored);
    };
    const Floats expected{1, 2};
    EXPECT_EQ(minus(DType::F32, std::vector<float>{2, 3}), expected);
    EXPECT_EQ(minus(DType::F64, std::vector<double>{2, 3}), expected);
    EXPECT_EQ(minus(DType::I64, std::vector<int64_t>{2, 3}), expected);
    EXPECT_EQ(minus(DType::I32, std::vector<int32_t>{2, 3}), expected);
    EXPECT_EQ(minus(DType::I16, std::vector<int16_t>{2, 3}), expected);
    EXPECT_EQ(minus(DType::I8, std::vector<int8_t>{2, 3}), expected);
    EXPECT_EQ(minus(DType::U32, std::vector<uint32_t>{2, 3}), expected);
    EXPECT_EQ(minus(DType::U16, std::vector<uint16_t>{2, 3}), expected);
    EXPECT_EQ(minus(DType::U8, std::vector<uint8_t>{2, 3}), expected);
}

TEST(FieldTransform, WithoutAKeyTheCropIsTheMiddle) {
    const Field row{"x", DType::F32, {1, 6}, 0};
    const Floats values{1, 2, 3, 4, 5, 6};
    EXPECT_EQ(changed({.field = "x", .crop = {1, 2}, .flip = 1, .scale = 10}, row, values), (Floats{30, 40}));
    // Half values go to the even place, as torchvision's CenterCrop has it: 2.5 to 2, 1.5 to 2.
    EXPECT_EQ(changed({.field = "x", .crop = {1, 1}, .scale = 10}, row, values), Floats{30});
    EXPECT_EQ(changed({.field = "x", .crop = {1, 3}, .scale = 10}, row, values), (Floats{30, 40, 50}));
    EXPECT_EQ(changed({.field = "x", .crop = {1, 8}, .pad = 1, .scale = 10}, row, values),
              (Floats{0, 10, 20, 30, 40, 50, 60, 0}));
    // Of an odd number of zeros its lesser half comes first, whatever is even: 0 and 1, 1 and 2.
    EXPECT_EQ(changed({.field = "x", .crop = {1, 7}, .pad = 2, .scale = 10}, row, values),
              (Floats{10, 20, 30, 40, 50, 60, 0}));
    EXPECT_EQ(changed({.field = "x", .crop = {1, 9}, .pad = 2, .scale = 10}, row, values),
              (Floats{0, 10, 20, 30, 40, 50, 60, 0, 0}));
}

TEST(FieldTransform, AKeyGivesEveryPlaceAndBothSides) {
    const Field row{"x", DType::F32, {1, 3}, 0};
    const TransformPlan table{.field = "x", .crop = {1, 3}, .pad = 1, .flip = 0.5, .scale = 10};
    std::set<Floats> seen;
    int mirrored = 0;
    for (uint64_t key = 0; key < 400; ++key) {
        const Floats values = changed(table, row, Floats{1, 2, 3}, key);
        EXPECT_EQ(values, changed(table, row, Floats{1, 2, 3}, key));
        seen.insert(values);
        mirrored += values == Floats{20, 10, 0} || values == Floats{30, 20, 10} || values == Floats{0, 30, 20};
    }
    // The row of the crop lies above, in and below the picture; outside are zeros alone.
    EXPECT_EQ(seen, (std::set<Floats>{
                        {0, 10, 20}, {10, 20, 30}, {20, 30, 0}, {20, 10, 0}, {30, 20, 10}, {0, 30, 20}, {0, 0, 0}}));
    EXPECT_GT(mirrored, 30);
    EXPECT_LT(mirrored, 120);
}

TEST(FieldTransform, CropsAndFlipsAloneKeepTheType) {
    const FieldTransform transform(plan_with({.field = "x", .crop = {1, 2}}), 0, {"x", DType::I64, {1, 1, 4}, 10});
    EXPECT_EQ(transform.field().dtype, DType::I64);
    EXPECT_EQ(transform.field().bound, 10);
    EXPECT_EQ(transform.field().shape, (std::vector<int64_t>{1, 1, 2}));
    const std::vector<int64_t> stored{1, 2, 3, 4};
    std::vector<int64_t> out(2);
    transform.apply(std::as_bytes(std::span(stored)), std::nullopt, std::as_writable_bytes(std::span(out)));
    EXPECT_EQ(out, (std::vector<int64_t>{2, 3}));
}

TEST(FieldTransform, ResizeComesFirst) {
    const Field field{"x", DType::U8, {1, 1, 2}, 0};
    EXPECT_EQ(changed({.field = "x", .resize = {1, 4}, .crop = {1, 2}}, field, std::vector<uint8_t>{0, 4}),
              (Floats{1, 3}));
}

TEST(FieldTransform, TablesThatDoNotFitTheirFieldAreRefused) {
    EXPECT_EQ(transform_error({.field = "x", .scale = 2}, {"x", DType::Bool, {2}, 0}),
              "data.transform[0]: resize, scale, mean and std are for integers, float32 and float64 (got field x of "
              "bool)");
    EXPECT_EQ(transform_error({.field = "x", .mean = {1, 2}, .deviation = {1, 2}}, {"x", DType::F32, {3, 4}, 0}),
              "data.transform[0]: mean and std are one number, or one for each channel (got 2, expected 1 or 3 for "
              "field x of shape [3, 4])");
    EXPECT_EQ(transform_error({.field = "x", .flip = 1}, {"x", DType::F32, {3}, 0}),
              "data.transform[0]: resize, crop and flip are for pictures, [..., height, width] (got field x of shape "
              "[3])");
    EXPECT_EQ(
        transform_error({.field = "x", .crop = {9, 4}, .pad = 2}, {"x", DType::F32, {3, 4, 4}, 0}),
        "data.transform[0]: the crop is larger than the picture (got [9, 4], expected at most [8, 8] of field x); "
        "try pad or resize");
}

}  // namespace
}  // namespace vpp::detail
