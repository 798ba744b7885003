#include "data/synthetic.hpp"

#include <algorithm>
#include <cmath>

#include "unit/data/support.hpp"

namespace vpp {
namespace {

using test::error_of;
using test::read_values;

Plan synthetic_plan(NamedTexts fields, int64_t samples = 100) {
    Plan plan;
    plan.data.kind = "synthetic";
    plan.data.fields = std::move(fields);
    plan.data.samples = samples;
    return plan;
}

std::string synthetic_refusal(const std::string& text) {
    const std::string message = error_of(ErrorKind::BadData, [&] { parse_synthetic_field("x", text); });
    EXPECT_HAS(message, "synthetic field x: ");
    return message;
}

TEST(SyntheticField, Parses) {
    const Field image = parse_synthetic_field("image", "float32[3, 32,32]");
    EXPECT_EQ(image.name, "image");
    EXPECT_EQ(image.dtype, DType::F32);
    EXPECT_EQ(image.shape, (std::vector<int64_t>{3, 32, 32}));
    EXPECT_EQ(image.bound, 0);
    const Field label = parse_synthetic_field("label", "int64[] < 10");
    EXPECT_EQ(label.dtype, DType::I64);
    EXPECT_TRUE(label.shape.empty());
    EXPECT_EQ(label.bound, 10);
    EXPECT_EQ(parse_synthetic_field("x", "uint8[2]<256").bound, 256);
    EXPECT_EQ(parse_synthetic_field("x", "bool[4]").bound, 2);
}

TEST(SyntheticField, RefusesTheRest) {
    EXPECT_HAS(synthetic_refusal("flaot32[3]"), "did you mean 'float32'?");
    EXPECT_HAS(synthetic_refusal("float16[3]"), "unknown dtype");
    EXPECT_HAS(synthetic_refusal("int64[]"), "integers need a bound");
    EXPECT_HAS(synthetic_refusal("float32[] < 3"), "only integers have a bound");
    EXPECT_HAS(synthetic_refusal("uint8[] < 257"), "does not fit the dtype");
    EXPECT_HAS(synthetic_refusal("int32[] < 2147483649"), "does not fit the dtype");
    EXPECT_HAS(synthetic_refusal("bool[] < 3"), "does not fit the dtype");
    EXPECT_HAS(synthetic_refusal("float32[65536, 65536, 2]"), "larger than 2^32");
    for (const std::string text :
         {"", "float32", "float32[", "float32[3", "float32[3,]", "float32[,]", "float32[0]", "float32[-1]",
          "int64[] < ", "int64[] < 0", "int64[] < 10 x", "float32[99999999999999999999]"}) {
        synthetic_refusal(text);
    }
}

// Fixed for ever: a result measured on synthetic data can be repeated anywhere. Computed once by another program.
TEST(Synthetic, Golden) {
    const auto data = open_dataset(synthetic_plan({{"x", "float64[3]"}, {"label", "int64[6] < 10"}}), Subset::Train);
    EXPECT_EQ(read_values<double>(*data, 3, 0),
              (std::vector<double>{-0.24769256851845184, -0.15463606683754394, 0.05595018859939848}));
    EXPECT_EQ(read_values<int64_t>(*data, 3, 1), (std::vector<int64_t>{6, 5, 0, 6, 8, 5}));
}

TEST(Synthetic, FloatsHaveMeanZeroAndVarianceOne) {
    const auto data = open_dataset(synthetic_plan({{"x", "float32[20000]"}}), Subset::Train);
    const std::vector<float> values = read_values<float>(*data, 0, 0);
    double sum = 0, squares = 0;
    for (float value : values) {
        sum += value;
        squares += static_cast<double>(value) * value;
    }
    const auto count = static_cast<double>(values.size());
    EXPECT_LT(std::abs(sum / count), 0.03);
    EXPECT_LT(std::abs(squares / count - 1), 0.03);
    EXPECT_LT(*std::max_element(values.begin(), values.end()), 3.47F);
}

TEST(Synthetic, IntegersFillTheirRangeInEveryDtype) {
    const auto data = open_dataset(synthetic_plan({{"a", "int64[500] < 5"},
                                                   {"b", "int32[500] < 5"},
                                                   {"c", "int16[500] < 5"},
                                                   {"d", "uint8[500] < 5"},
                                                   {"e", "bool[500]"}}),
                                   Subset::Train);
    const auto check_values = [](const auto& values, int bound) {
        for (int i = 0; i < bound; ++i) EXPECT_NE(std::find(values.begin(), values.end(), i), values.end()) << i;
        for (const auto value : values) EXPECT_TRUE(value >= 0 && value < bound);
    };
    check_values(read_values<int64_t>(*data, 0, 0), 5);
    check_values(read_values<int32_t>(*data, 0, 1), 5);
    check_values(read_values<int16_t>(*data, 0, 2), 5);
    check_values(read_values<uint8_t>(*data, 0, 3), 5);
    check_values(read_values<uint8_t>(*data, 0, 4), 2);
}

TEST(Synthetic, SamplesAndFieldsDiffer) {
    const auto data = open_dataset(synthetic_plan({{"x", "float32[8]"}, {"y", "float32[8]"}}), Subset::Train);
    EXPECT_EQ(read_values<float>(*data, 1, 0), read_values<float>(*data, 1, 0));
    EXPECT_NE(read_values<float>(*data, 1, 0), read_values<float>(*data, 2, 0));
    EXPECT_NE(read_values<float>(*data, 1, 0), read_values<float>(*data, 1, 1));
}

TEST(Synthetic, ThePlanIsCheckedAllAtOnce) {
    Plan plan = synthetic_plan({{"x", "float32"}, {"y", "int64[]"}, {"z", "float32[2]"}}, 0);
    plan.positions["data.fields.y"] = {"plan.toml", 7, 5, "y = \"int64[]\""};
    try {
        open_dataset(plan, Subset::Train);
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::Plan);
        ASSERT_EQ(error.problems().size(), 3U);
        EXPECT_HAS(to_text(error.problems()[1]), "plan.toml:7:5");
        EXPECT_HAS(error.problems()[2].message, "data.samples (got 0");
    }
    EXPECT_HAS(error_of(ErrorKind::Plan, [] { open_dataset(synthetic_plan({}), Subset::Train); }), "[data.fields]");
}

TEST(Synthetic, HasNoValidationPartAndADigest) {
    const auto digest = [](NamedTexts fields, int64_t samples) {
        return open_dataset(synthetic_plan(std::move(fields), samples), Subset::Train)->digest();
    };
    EXPECT_EQ(open_dataset(synthetic_plan({{"x", "float32[2]"}}), Subset::Validation), nullptr);
    EXPECT_EQ(digest({{"x", "float32[2]"}}, 5), digest({{"x", "float32[ 2 ]"}}, 5));
    EXPECT_NE(digest({{"x", "float32[2]"}}, 5), digest({{"x", "float32[2]"}}, 6));
    EXPECT_NE(digest({{"x", "float32[2]"}}, 5), digest({{"x", "float32[3]"}}, 5));
    EXPECT_NE(digest({{"x", "int64[] < 3"}}, 5), digest({{"x", "int64[] < 4"}}, 5));
}

}  // namespace
}  // namespace vpp
