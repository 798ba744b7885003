#include "checkpoint/weights_match.hpp"

#include <ctime>

#include "samples.hpp"

namespace vpp {
namespace {

using test::expect_error;

/// Writes float tensors of given lengths, each filled with its own value.
class MatchTest : public testing::Test {
  protected:
    struct Entry {
        std::string name;
        std::vector<float> values;
    };

    WeightsFile file_of(const std::vector<Entry>& entries) const {
        std::vector<TensorBytes> tensors;
        for (const Entry& entry : entries) {
            tensors.push_back({entry.name,
                               DType::F32,
                               {static_cast<int64_t>(entry.values.size())},
                               std::as_bytes(std::span(entry.values))});
        }
        const auto path = scratch_.path() / "w.safetensors";
        write_weights(path, tensors, {});
        return WeightsFile(path);
    }

    static WantedWeight wanted(std::vector<std::string> names, int64_t length) {
        return {std::move(names), DType::F32, {length}, false};
    }

    test::ScratchFolder scratch_;
};

TEST_F(MatchTest, FindsByNameAndSaysWhatIsExtra) {
    const WeightsFile file = file_of({{"a", {1}}, {"b", {2, 3}}, {"c", {4}}});
    const MatchedWeights matched = match_weights(file, {wanted({"b"}, 2), wanted({"a"}, 1)});
    EXPECT_EQ(matched.values[0]->name, "b");
    EXPECT_EQ(matched.values[1]->name, "a");
    EXPECT_EQ(matched.extra, std::vector<std::string>{"c"});
    EXPECT_TRUE(matched.absent.empty());
}

TEST_F(MatchTest, AnyNameOfATiedTensorWillDo) {
    const WeightsFile file = file_of({{"head", {1}}});
    const MatchedWeights matched = match_weights(file, {wanted({"table", "head"}, 1)});
    EXPECT_EQ(matched.values[0]->name, "head");
    EXPECT_TRUE(matched.extra.empty());
}

TEST_F(MatchTest, NamesOfOneTensorMustHaveTheSameValues) {
    EXPECT_NO_THROW(match_weights(file_of({{"head", {1}}, {"table", {1}}}), {wanted({"table", "head"}, 1)}));
    const WeightsFile file = file_of({{"head", {1}}, {"table", {2}}});
    expect_error(
        ErrorKind::BadData,
        file.path().string() + ": holds other values for 'head' than for 'table', which are one tensor in the model",
        [&] {
            match_weights(file, {wanted({"table", "head"}, 1)});
        });
}

TEST_F(MatchTest, AllThatIsMissingOrUnfitIsSaidAtOnce) {
    const WeightsFile file = file_of({{"layer.wieght", {1}}, {"b", {2, 3}}, {"c", {0}}});
    const std::vector<WantedWeight> weights{wanted({"layer.weight"}, 1), wanted({"b"}, 3), wanted({"c"}, 1)};
    expect_error(ErrorKind::BadData, "no tensor 'layer.weight'; did you mean 'layer.wieght'?",
                 [&] { match_weights(file, weights); });
    expect_error(ErrorKind::BadData, "'b' is float32[2], the model expects float32[3]",
                 [&] { match_weights(file, weights); });
    WantedWeight whole = wanted({"c"}, 1);
    whole.dtype = DType::I32;
    expect_error(ErrorKind::BadData, "is float32[1], the model expects int32[1]",
                 [&] { match_weights(file, {whole}); });
}

TEST_F(MatchTest, ThousandsOfOtherNamesAreRefusedQuickly) {
    constexpr int kNames = 3'000;
    std::vector<Entry> entries{{"common", {1}}};
    std::vector<WantedWeight> weights{wanted({"common"}, 1)};
    for (int i = 0; i < kNames; ++i) {
        const std::string number = std::to_string(i);
        entries.push_back({"a.long.way.down.to.the.blocks." + number + ".attention.output.bias", {1}});
        weights.push_back(wanted({number + ".encoder.layers.with.other.names.than.those.weight"}, 1));
    }
    const WeightsFile file = file_of(entries);
    const std::clock_t start = std::clock();  // of this process: others may keep it waiting
    const auto error = test::caught_error([&] { match_weights(file, weights); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->problems().size(), 11u);
    EXPECT_TRUE(error->problems().back().message.ends_with("and 2990 more like these"));
    EXPECT_LT((std::clock() - start) / CLOCKS_PER_SEC, 20);
}

TEST_F(MatchTest, OneOfAnotherShapeThatTheSeedMayFillTellsHow) {
    const WeightsFile file = file_of({{"head.bias", {1, 2, 3}}, {"head.weight", {1, 2}}, {"body", {1}}});
    std::vector<WantedWeight> weights{wanted({"head.bias"}, 2), wanted({"head.weight"}, 3), wanted({"body"}, 1)};
    const std::string remedy = "; to begin it anew, leave it out of the file and name it in a [[model.init]] table";
    const auto said = [&] {
        try {
            match_weights(file, weights);
        } catch (const Error& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    EXPECT_EQ(said().find(remedy), std::string::npos) << "buffers have no seed";
    for (WantedWeight& weight : weights) weight.seed_fill = SeedFill::IfNamed;
    const size_t at = said().find("'head.bias' is float32[3], the model expects float32[2]" + remedy);
    ASSERT_NE(at, std::string::npos) << said();
    EXPECT_EQ(said().find(remedy, said().find("'head.weight'")), std::string::npos) << "once is enough";
}

TEST_F(MatchTest, OnlyWhatMayBeAbsentMay) {
    const WeightsFile file = file_of({{"a", {1}}});
    std::vector<WantedWeight> weights{wanted({"a"}, 1), wanted({"mask"}, 4)};
    expect_error(ErrorKind::BadData, "no tensor 'mask'", [&] { match_weights(file, weights); });
    weights[1].may_be_absent = true;
    const MatchedWeights matched = match_weights(file, weights);
    EXPECT_FALSE(matched.values[1]);
    EXPECT_EQ(matched.absent, std::vector<std::string>{"mask"});
}

TEST_F(MatchTest, WhatIsFilledFromTheSeedNeedNotBeThere) {
    const WeightsFile file = file_of({{"a", {1}}, {"c", {2}}});
    std::vector<WantedWeight> weights{wanted({"a"}, 1), wanted({"lora_a"}, 4), wanted({"c"}, 1), wanted({"mask"}, 4)};
    for (WantedWeight& weight : weights) weight.seed_fill = SeedFill::IfNamed;
    const auto error = test::caught_error([&] { match_weights(file, weights); });
    ASSERT_TRUE(error);
    ASSERT_EQ(error->problems().size(), 2u);
    EXPECT_EQ(error->problems()[0].message,
              file.path().string() +
                  ": has no tensor 'lora_a'; a [[model.init]] table whose match names it fills it from the seed");
    EXPECT_EQ(error->problems()[1].message, file.path().string() + ": has no tensor 'mask'") << "it is said once";
    for (size_t i : {1, 2}) weights[i].seed_fill = SeedFill::Named;
    weights[3].may_be_absent = true;
    const MatchedWeights matched = match_weights(file, weights);
    EXPECT_FALSE(matched.values[1]);
    EXPECT_TRUE(matched.values[2]) << "what the file has goes before";
    EXPECT_EQ(matched.seeded, std::vector<std::string>{"lora_a"});
    EXPECT_EQ(matched.absent, std::vector<std::string>{"mask"});
}

TEST_F(MatchTest, WrappersOfPeftAreLeftOutOfNames) {
    const std::string note = "of the model's names have '.base_layer' or '.default' in them, which the file's lack";
    const std::vector<WantedWeight> weights{wanted({"m.base_model.model.q.base_layer.weight"}, 1),
                                            wanted({"m.base_model.model.k.weight"}, 1),
                                            wanted({"m.base_model.model.q.lora_A.default.weight"}, 2)};
    const WeightsFile peft = file_of({{"base_model.model.q.weight", {1}},
                                      {"base_model.model.k.weight", {2}},
                                      {"base_model.model.q.lora_A.weight", {3, 4}}});
    const MatchedWeights matched = match_weights(peft, weights);
    EXPECT_EQ(matched.values[0]->name, "base_model.model.q.weight");
    EXPECT_EQ(matched.values[2]->name, "base_model.model.q.lora_A.weight");
    EXPECT_EQ(matched.notes,
              (std::vector<std::string>{"the model's names have 'm.' in front of the file's", "2 " + note}));
    std::vector<WantedWeight> seeded = weights;
    seeded[2].seed_fill = SeedFill::Named;
    const MatchedWeights base = match_weights(file_of({{"q.weight", {1}}, {"k.weight", {2}}}), seeded);
    EXPECT_EQ(base.values[0]->name, "q.weight");
    EXPECT_EQ(base.seeded, std::vector<std::string>{"m.base_model.model.q.lora_A.default.weight"});
    EXPECT_EQ(base.notes.back(), "1 " + note);
}

TEST_F(MatchTest, WrappedNamesGoBeforeUnwrappedOnes) {
    const WeightsFile file = file_of({{"q.base_layer.weight", {1}}, {"q.weight", {2}}});
    const MatchedWeights alone = match_weights(file, {wanted({"q.base_layer.weight"}, 1)});
    EXPECT_EQ(alone.values[0]->name, "q.base_layer.weight");
    EXPECT_TRUE(alone.notes.empty());
    const MatchedWeights both = match_weights(file, {wanted({"q.base_layer.weight"}, 1), wanted({"q.weight"}, 1)});
    EXPECT_EQ(both.values[1]->name, "q.weight") << "a name of its own";
    expect_error(ErrorKind::BadData, "has no tensor 'q.base_layer.weight'", [&] {
        match_weights(file_of({{"q.weight", {2}}}), {wanted({"q.base_layer.weight"}, 1), wanted({"q.weight"}, 1)});
    });
}

TEST_F(MatchTest, AFileOfQuiteAnotherModelIsOneProblem) {
    const WeightsFile file = file_of({{"module.c", {1}}, {"module.d", {2}}});
    const auto error = test::caught_error([&] { match_weights(file, {wanted({"a"}, 1), wanted({"b"}, 1)}); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->problems().size(), 1u);
    EXPECT_EQ(error->what(), file.path().string() +
                                 ": has none of the model's 2 parameters and buffers, such as 'a'; it has "
                                 "'module.c', 'module.d'");
}

TEST_F(MatchTest, APrefixIsLeftOutWhenNoNameMatches) {
    const WeightsFile file = file_of({{"a", {1}}, {"c", {2, 3}}, {"more", {4}}});
    WantedWeight mask = wanted({"m.mask"}, 4);
    mask.may_be_absent = true;
    const MatchedWeights matched = match_weights(file, {wanted({"m.b", "m.c"}, 2), wanted({"m.a"}, 1), mask});
    EXPECT_EQ(matched.values[0]->name, "c");
    EXPECT_EQ(matched.values[1]->name, "a");
    EXPECT_EQ(matched.absent, std::vector<std::string>{"m.mask"});
    EXPECT_EQ(matched.extra, std::vector<std::string>{"more"});
    EXPECT_EQ(matched.notes, std::vector<std::string>{"the model's names have 'm.' in front of the file's"});
}

TEST_F(MatchTest, NamesThatMatchAreTakenAsTheyAre) {
    const WeightsFile file = file_of({{"m.a", {1}}, {"a", {2}}});
    const MatchedWeights matched = match_weights(file, {wanted({"m.a"}, 1)});
    EXPECT_EQ(matched.values[0]->name, "m.a");
    EXPECT_TRUE(matched.notes.empty());
}

/// One element of each dtype in a file of its own.
class ConvertTest : public MatchTest {
  protected:
    std::string refusal(DType in_file, DType in_model) const {
        const auto error = test::caught_error([&] { match(in_file, in_model); });
        return error ? error->what() : "";
    }

    MatchedWeights match(DType in_file, DType in_model) const {
        const std::vector<std::byte> zeros(8);
        const auto path = scratch_.path() / "w.safetensors";
        write_weights(path, {{"w", in_file, {1}, std::span(zeros).first(size_of(in_file))}}, {});
        return match_weights(WeightsFile(path), {{{"w"}, in_model, {1}, false}});
    }
};

TEST_F(ConvertTest, WiderFloatsTakeNarrowerOnes) {
    for (const auto& [in_file, in_model] : {std::pair(DType::BF16, DType::F32),
                                            {DType::F16, DType::F32},
                                            {DType::BF16, DType::F64},
                                            {DType::F16, DType::F64},
                                            {DType::F32, DType::F64}}) {
        const MatchedWeights matched = match(in_file, in_model);
        EXPECT_EQ(matched.values[0]->dtype, in_file);
        EXPECT_EQ(matched.notes,
                  std::vector<std::string>{"1 of 1 tensors converted from " + std::string(name_of(in_file)) + " to " +
                                           std::string(name_of(in_model)) + ", which is exact"});
    }
    EXPECT_TRUE(match(DType::F32, DType::F32).notes.empty());
}

TEST_F(ConvertTest, WhatWouldRoundIsRefusedWithARemedy) {
    EXPECT_TRUE(refusal(DType::F32, DType::BF16)
                    .ends_with("'w' is float32[1], the model expects bfloat16[1]; vpp does not round weights: convert "
                               "the file, or export the model in float32"));
    for (const auto& [in_file, in_model] : {std::pair(DType::F64, DType::F32),
                                            {DType::F32, DType::F16},
                                            {DType::F16, DType::BF16},
                                            {DType::BF16, DType::F16}}) {
        EXPECT_NE(refusal(in_file, in_model).find("vpp does not round weights"), std::string::npos);
    }
    for (const auto& [in_file, in_model] : {std::pair(DType::I32, DType::I64), {DType::I32, DType::F64}}) {
        EXPECT_TRUE(refusal(in_file, in_model).ends_with("[1]")) << "nothing but floats is converted";
    }
}

TEST_F(MatchTest, ManyProblemsAreCounted) {
    const WeightsFile file = file_of({{"a", {1}}});
    std::vector<WantedWeight> weights{wanted({"a"}, 1)};
    for (int i = 0; i < 30; ++i) weights.push_back(wanted({"layer" + std::to_string(i)}, 1));
    const auto error = test::caught_error([&] { match_weights(file, weights); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->problems().size(), 11u);
    EXPECT_NE(std::string(error->what()).find(": and 20 more like these"), std::string::npos) << error->what();
}

TEST(NamesText, ShowsAFewAndCountsTheRest) {
    EXPECT_EQ(names_text({}), "no tensors");
    EXPECT_EQ(names_text({"a", "b\x1b"}), "'a', 'b?'");
    EXPECT_EQ(names_text({"a", "b", "c", "d", "e", "f", "g"}), "'a', 'b', 'c', 'd', 'e' and 2 more");
}

}  // namespace
}  // namespace vpp
