#include "checkpoint/weights_match.hpp"

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

TEST_F(MatchTest, OnlyWhatMayBeAbsentMay) {
    const WeightsFile file = file_of({{"a", {1}}});
    std::vector<WantedWeight> weights{wanted({"a"}, 1), wanted({"mask"}, 4)};
    expect_error(ErrorKind::BadData, "no tensor 'mask'", [&] { match_weights(file, weights); });
    weights[1].may_be_absent = true;
    const MatchedWeights matched = match_weights(file, weights);
    EXPECT_FALSE(matched.values[1]);
    EXPECT_EQ(matched.absent, std::vector<std::string>{"mask"});
}

TEST_F(MatchTest, AFileOfQuiteAnotherModelIsOneProblem) {
    const WeightsFile file = file_of({{"module.a", {1}}, {"module.b", {2}}});
    const auto error = test::caught_error([&] { match_weights(file, {wanted({"a"}, 1), wanted({"b"}, 1)}); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->problems().size(), 1u);
    EXPECT_EQ(error->what(), file.path().string() +
                                 ": has none of the model's 2 parameters and buffers, such as 'a'; it has "
                                 "'module.a', 'module.b'");
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
