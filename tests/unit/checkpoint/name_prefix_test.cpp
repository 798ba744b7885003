#include "checkpoint/name_prefix.hpp"

#include "samples.hpp"

namespace vpp {
namespace {

using test::expect_error;
using Side = NamePrefix::Side;

class PrefixTest : public testing::Test {
  protected:
    /// Float tensors of zeros: name, length.
    WeightsFile file_of(const std::vector<std::pair<std::string, int64_t>>& entries) const {
        const std::vector<float> zeros(16);
        std::vector<TensorBytes> tensors;
        for (const auto& [name, length] : entries) {
            tensors.push_back(
                {name, DType::F32, {length}, std::as_bytes(std::span(zeros)).first(static_cast<size_t>(length) * 4)});
        }
        const auto path = scratch_.path() / "w.safetensors";
        write_weights(path, tensors, {});
        return WeightsFile(path);
    }

    static WantedWeight wanted(std::vector<std::string> names, int64_t length, bool may_be_absent = false) {
        return {std::move(names), DType::F32, {length}, may_be_absent};
    }

    test::ScratchFolder scratch_;
};

TEST_F(PrefixTest, AWrapperHasItInTheModel) {
    const WeightsFile file = file_of({{"h.0.weight", 2}, {"h.1.weight", 2}, {"other", 1}});
    const NamePrefix prefix = find_prefix(
        file, {wanted({"m.h.0.weight"}, 2), wanted({"m.h.1.weight"}, 2), wanted({"own_constant"}, 1, true)});
    EXPECT_EQ(prefix, (NamePrefix{Side::Model, "m."}));
    EXPECT_EQ(prefix.in_file("m.h.0.weight"), "h.0.weight");
    EXPECT_EQ(prefix.in_file("own_constant"), std::nullopt);
    EXPECT_EQ(prefix_text(prefix), "the model's names have 'm.' in front of the file's");
}

TEST_F(PrefixTest, AFileSavedOutOfAWrapperHasItInTheFile) {
    const NamePrefix prefix =
        find_prefix(file_of({{"ddp.module.a", 1}, {"ddp.module.b.c", 2}}), {wanted({"a"}, 1), wanted({"b.c"}, 2)});
    EXPECT_EQ(prefix, (NamePrefix{Side::File, "ddp.module."}));
    EXPECT_EQ(prefix.in_file("b.c"), "ddp.module.b.c");
    EXPECT_EQ(prefix_text(prefix), "the file's names have 'ddp.module.' in front of the model's");
}

TEST_F(PrefixTest, OneNameOfATiedTensorIsEnough) {
    const WeightsFile file = file_of({{"table", 4}, {"norm", 1}});
    EXPECT_EQ(find_prefix(file, {wanted({"m.head", "m.table"}, 4), wanted({"m.norm"}, 1)}).text, "m.");
}

TEST_F(PrefixTest, ComponentsAreNotCut) {
    expect_error(ErrorKind::BadData, "has none of the model's 1 parameters and buffers, such as 'mask.a'; it has 'k.a'",
                 [&] {
                     find_prefix(file_of({{"k.a", 1}}), {wanted({"mask.a"}, 1)});
                 });
}

TEST_F(PrefixTest, TheNearestAreNamedWhenNoneFitsAll) {
    const WeightsFile file = file_of({{"a", 1}, {"b", 2}, {"c", 3}});
    const auto error = test::caught_error([&] {
        find_prefix(file, {wanted({"m.a"}, 1), wanted({"m.b"}, 2), wanted({"m.c"}, 4), wanted({"n.a"}, 1)});
    });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->what(),
              file.path().string() +
                  ": has none of the model's 4 parameters and buffers, such as 'm.a'; it has 'a', 'b', 'c'; without "
                  "'m.' in front of the model's names 2 of 4 would fit, not 'm.c', 'n.a'; without 'n.' in front of "
                  "the model's names 1 of 4 would fit, not 'm.a', 'm.b', 'm.c'; the tensor 'c' is of shape [3], the "
                  "model expects [4]");
}

TEST_F(PrefixTest, AnotherShapeIsTold) {
    const WeightsFile file = file_of({{"a", 1}, {"b", 2}, {"c", 3}});
    expect_error(ErrorKind::BadData,
                 " 1 of 3 would fit, not 'm.b', 'm.c'; the tensor 'b' is of shape [2], the model expects [5]", [&] {
                     find_prefix(file, {wanted({"m.a"}, 1), wanted({"m.b"}, 5), wanted({"m.c"}, 4)});
                 });
}

TEST_F(PrefixTest, WhatIsFilledFromTheSeedNeedNotFit) {
    const auto seeded = [](const std::string& name) {
        WantedWeight weight = wanted({name}, 1);
        weight.seed_fill = SeedFill::Named;
        return weight;
    };
    const WeightsFile file = file_of({{"a", 1}, {"b", 1}});
    EXPECT_EQ(find_prefix(file, {wanted({"m.a"}, 1), seeded("m.b"), seeded("m.lora")}).text, "m.");
    EXPECT_EQ(find_prefix(file, {seeded("m.a"), seeded("m.b")}).text, "m.") << "all of them fit";
    expect_error(ErrorKind::BadData, "1 of 2 would fit, not 'm.c'", [&] {
        find_prefix(file, {seeded("m.a"), seeded("m.c")});
    });
}

TEST_F(PrefixTest, NothingIsGuessed) {
    const WeightsFile file = file_of({{"ema.a", 1}, {"model.a", 1}});
    expect_error(ErrorKind::BadData,
                 "; all would fit without 'ema.' in front of the file's names, or without 'model.' in front of the "
                 "file's names: leave in the file what is meant",
                 [&] { find_prefix(file, {wanted({"a"}, 1)}); });
}

TEST_F(PrefixTest, AnotherShapeDoesNotFit) {
    const WeightsFile file = file_of({{"ema.a", 2}, {"model.a", 1}});
    EXPECT_EQ(find_prefix(file, {wanted({"a"}, 1)}).text, "model.");
}

}  // namespace
}  // namespace vpp
