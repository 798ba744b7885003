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
    std::string many = "float32[1";
    for (int i = 0; i < 32; ++i) many += ", 1";
    const std::vector<std::pair<std::string, std::string>> cases{
        {"flaot32[3]", "unknown dtype 'flaot32'; did you mean 'float32'?"},
        {"int64[]", "integers need a bound"},
        {"float32[] < 3", "only integers have a bound"},
        {"uint8[] < 257", "the bound does not fit the dtype"},
        {"int32[] < 2147483649", "the bound does not fit the dtype"},
        {"bool[] < 3", "the bound does not fit the dtype"},
        {"float32[65536, 65536, 2]", "a sample is larger than 2^32 values"},
        {"", "unknown dtype ''"},
        {"float32", "the shape is missing"},
        {"float32[3", "a ']' is missing"},
        {"float32[", "a whole number from 1 on is missing"},
        {"float32[3,]", "a whole number from 1 on is missing"},
        {"float32[,]", "a whole number from 1 on is missing"},
        {"float32[0]", "a whole number from 1 on is missing"},
        {"float32[-1]", "a whole number from 1 on is missing"},
        {"float32[99999999999999999999]", "a whole number from 1 on is missing"},
        {"int64[] < ", "a whole number from 1 on is missing"},
        {"int64[] < 0", "a whole number from 1 on is missing"},
        {"int64[] < 10 x", "something follows"},
        {many + "]", "too many dims"},
    };
    for (const auto& [text, what] : cases) {
        EXPECT_EQ(synthetic_refusal(text), "synthetic field x: " + what + " (got '" + text +
                                               "', expected a form like 'float32[3, 32, 32]' or 'int64[] < 10')");
    }
    EXPECT_HAS(synthetic_refusal("float16[3]"), "unknown dtype 'float16'");
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
        EXPECT_EQ(error.problems()[2].message,
                  "data.kind synthetic needs data.samples (got 0, expected at least 1); try 1024");
    }
    EXPECT_EQ(error_of(ErrorKind::Plan, [] { open_dataset(synthetic_plan({}), Subset::Train); }),
              "data.kind synthetic needs the table data.fields; try [data.fields] x = \"float32[8]\"");
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
