#include "stage/weights.hpp"

#include <ATen/ops/full.h>

#include "unit/stage/support.hpp"

namespace vpp::test {
namespace {

/// Weights whose value is their number; counts what is read.
class CountingSource : public Source {
  public:
    std::map<int, int> reads;

    std::unique_ptr<Executable> executable(const OpSelection&, at::Device) override { return nullptr; }
    at::Tensor weight(int parameter) override {
        ++reads[parameter];
        return at::full({2}, parameter);
    }
};

/// Stage 0 owns 0 and 3, stage 1 owns 2 and borrows 0, stage 2 owns 1 and borrows 0.
Split sample_split() {
    Split split;
    split.stages.resize(3);
    split.stages[0].parameters = {0, 3};
    split.stages[1].parameters = {2};
    split.stages[1].borrowed = {0};
    split.stages[2].parameters = {1};
    split.stages[2].borrowed = {0};
    return split;
}

TEST(Weights, readsWhatItsStagesOwnAndBorrowAndNothingElse) {
    CountingSource source;
    Weights weights;
    weights.load(source, sample_split(), {1, 2});
    EXPECT_EQ(source.reads, (std::map<int, int>{{0, 1}, {1, 1}, {2, 1}})) << "each once, 3 not at all";
    EXPECT_EQ(weights.owned(), (std::vector<int>{1, 2})) << "ascending; what is borrowed is saved by its owner";
    EXPECT_EQ(weights.held(), (std::vector<int>{0, 1, 2}));
    EXPECT_FALSE(weights.contains(3));
    EXPECT_EQ(weights.at(2)[0].item<int64_t>(), 2);
    EXPECT_HAS(error_of(ErrorKind::Bug, [&] { weights.at(3); }), "only weights that its rank holds");
}

TEST(Weights, doesNotCopyWhatItOwnsForAnotherOfItsStages) {
    CountingSource source;
    Weights weights;
    weights.load(source, sample_split(), {0, 1});
    EXPECT_EQ(source.reads[0], 1);
    EXPECT_EQ(weights.owned(), (std::vector<int>{0, 2, 3}));
}

TEST(Weights, addsWhatOnlyEvaluationUses) {
    Graph graph;
    graph.parameters.resize(4);
    graph.parameters[1].uses = {5};
    CountingSource source, evaluation;
    Weights weights;
    weights.load(source, sample_split(), {0});
    Split split = sample_split();
    split.stages[0].parameters = {0, 1, 2, 3};  // 2 is placed here, but no op of evaluation uses it
    weights.load_missing(evaluation, graph, split, {0});
    EXPECT_EQ(evaluation.reads, (std::map<int, int>{{1, 1}}));
    EXPECT_EQ(weights.owned(), (std::vector<int>{0, 3})) << "evaluation owns nothing";
    EXPECT_TRUE(weights.contains(1));
    EXPECT_FALSE(weights.contains(2));
}

TEST(Weights, withOthersOnlyThoseAreReplaced) {
    CountingSource source;
    Weights weights;
    weights.load(source, sample_split(), {0, 1});
    const at::Tensor other = at::full({3}, 9);
    const Weights changed = weights.with({{2, other}});
    EXPECT_TRUE(changed.at(2).is_same(other));
    EXPECT_TRUE(changed.at(0).is_same(weights.at(0)));
    EXPECT_FALSE(weights.at(2).is_same(other)) << "the original stays";
    EXPECT_EQ(changed.owned(), weights.owned());
}

TEST(Weights, copiesAreHandles) {
    CountingSource source;
    Weights weights;
    weights.load(source, sample_split(), {0});
    const Weights other = weights;
    EXPECT_TRUE(other.at(0).is_same(weights.at(0)));
}

}  // namespace
}  // namespace vpp::test
