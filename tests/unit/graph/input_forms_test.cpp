#include "graph/input_forms.hpp"

#include <gmock/gmock.h>

#include "base/error.hpp"
#include "graph/torchscript.hpp"
#include "unit/graph/models.hpp"

namespace vpp {
namespace {

using namespace test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::vector<std::string> advice_on(const std::vector<Field>& fields) {
    std::vector<ProbeInput> inputs;
    for (const Field& field : fields) inputs.push_back({nullptr, field});
    std::vector<std::string> advice;
    for (const InputForm& form : other_forms(inputs)) advice.push_back(form.advice);
    return advice;
}

TEST(InputForms, FieldsAsModelsTakeThemHaveNoOther) {
    EXPECT_THAT(advice_on({{"x", DType::F32, {3, 32, 32}}, {"y", DType::I64, {}}, {"z", DType::F32, {28, 28, 7}}}),
                IsEmpty());
}

TEST(InputForms, PicturesOfBytesWithTheChannelsBehind) {
    EXPECT_THAT(
        advice_on({{"image", DType::U8, {32, 24, 3}}, {"label", DType::I64, {}}}),
        ElementsAre(", but it takes image as uint8[3, 32, 24]: save it so, with NumPy numpy.moveaxis(image, -1, 1)",
                    ", but it takes image as float32: save it so, with NumPy image.astype(\"float32\"), or have it "
                    "read so by a [[data.transform]] with scale = 0.00392156862745098, which makes bytes 0 to 1",
                    ", but it takes image as float32[3, 32, 24]: save it so, with NumPy numpy.moveaxis(image, -1, "
                    "1).astype(\"float32\"); instead of the cast a [[data.transform]] may read it with "
                    "scale = 0.00392156862745098, which makes bytes 0 to 1"));
}

TEST(InputForms, FewestChangesFirst) {
    const std::vector<ProbeInput> inputs{{nullptr, {"x", DType::F64, {9, 9, 1}}}, {nullptr, {"y", DType::I64, {1}}}};
    const std::vector<InputForm> forms = other_forms(inputs);
    ASSERT_EQ(forms.size(), 7U);
    EXPECT_EQ(forms[0].inputs[1].field.shape, std::vector<int64_t>{});
    EXPECT_EQ(forms[0].inputs[0].field.shape, (std::vector<int64_t>{9, 9, 1}));
    EXPECT_EQ(forms[6].inputs[0].field.shape, (std::vector<int64_t>{1, 9, 9}));
    EXPECT_EQ(forms[6].inputs[0].field.dtype, DType::F32);
    EXPECT_EQ(forms[6].inputs[1].field.dtype, DType::I64);
}

TEST(InputForms, LabelsInADimensionOfTheirOwnAreSaidWithWhatHelps) {
    const ModuleSpec model{"Model", "def forward(self, x, y):\n    return torch.cross_entropy_loss(x, y)\n"};
    const auto said = [&](std::vector<int64_t> shape) {
        const std::vector<Field> fields{{"x", DType::F32, {4}}, {"y", DType::I64, std::move(shape), 4}};
        return refusal(ErrorKind::BadData, [&] { load(model, options_for(fields, 5)); });
    };
    EXPECT_THAT(said({1}), HasSubstr(", but it takes y as int64[]: save it so, with NumPy y[:, 0]"));
    EXPECT_THAT(said({2}), Not(HasSubstr("save it so"))) << "it does not fit in any form";
}

}  // namespace
}  // namespace vpp
