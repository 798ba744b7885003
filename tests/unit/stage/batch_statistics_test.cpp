#include "stage/batch_statistics.hpp"

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/zeros.h>

#include "unit/stage/support.hpp"

namespace vpp::test {
namespace {

constexpr int kMean = 0, kVar = 1, kCount = 2, kOther = 3;

/// Buffers of a batch norm over two channels after five batches, and a parameter.
class BuffersOnly : public Source {
  public:
    std::unique_ptr<Executable> executable(const OpSelection&, at::Device) override { return nullptr; }
    at::Tensor weight(int parameter) override {
        if (parameter == kCount) return at::full({}, 5, at::kLong);
        return parameter == kMean ? at::full({2}, 0.5) : at::ones({2});
    }
};

class BatchStatisticsTest : public ::testing::Test {
  protected:
    BatchStatisticsTest() {
        graph_.parameters.resize(4);
        graph_.deferred_batch_norms = {{kMean, kVar, kCount, 0.1, false}};
        Split split;
        split.stages.resize(2);
        split.stages[0].parameters = {kMean, kVar, kCount, kOther};
        BuffersOnly source;
        weights_.load(source, split, {0});
        no_weights_.load(source, split, {1});
    }

    /// What the op does.
    static void add(const BatchStatistics& statistics, const at::Tensor& x) {
        const Weights seen = statistics.seen_by_ops();
        seen.at(kMean).add_(x.sum({0}));
        seen.at(kVar).add_((x * x).sum({0}));
        seen.at(kCount).add_(x.size(0));
    }

    Graph graph_;
    Weights weights_, no_weights_;
    const at::Tensor one_ = at::rand({3, 2}) + 2, other_ = at::rand({3, 2}) * 3;
};

TEST_F(BatchStatisticsTest, anUpdateIsThatOfTheWholeBatch) {
    BatchStatistics statistics(graph_, weights_);
    statistics.begin_step();
    add(statistics, one_);
    EXPECT_EQ(weights_.at(kCount).item<int64_t>(), 5) << "nothing changes before the end of the step";
    EXPECT_EQ(weights_.at(kMean)[0].item<double>(), 0.5);
    add(statistics, other_);
    statistics.commit();
    EXPECT_EQ(weights_.at(kCount).item<int64_t>(), 6);
    // To the bit: torchgpipe's formula.
    const at::Tensor mean = (one_.sum({0}) + other_.sum({0})) / 6;
    const at::Tensor var = ((one_ * one_).sum({0}) + (other_ * other_).sum({0})) / 6 - mean * mean;
    EXPECT_EQ(form_of(weights_.at(kMean)), form_of(at::full({2}, 0.5) * 0.9 + mean * 0.1));
    EXPECT_EQ(form_of(weights_.at(kVar)), form_of(at::ones({2}) * 0.9 + var * 0.1));
    // And its meaning: mean and biased variance over all six values a channel, not the unbiased one.
    const at::Tensor all = at::cat({one_, other_});
    const at::Tensor got = (weights_.at(kVar) - 0.9) / 0.1;
    EXPECT_LT((got - all.var({0}, /*unbiased=*/false)).abs().max().item<double>(), 1e-5);
    EXPECT_GT((got - all.var({0}, /*unbiased=*/true)).abs().max().item<double>(), 1e-3);
}

TEST_F(BatchStatisticsTest, withoutMomentumTheAverageIsCumulative) {
    graph_.deferred_batch_norms[0].cumulative = true;
    BatchStatistics statistics(graph_, weights_);
    statistics.begin_step();
    add(statistics, one_);
    statistics.commit();
    EXPECT_EQ(weights_.at(kCount).item<int64_t>(), 6);
    EXPECT_EQ(form_of(weights_.at(kMean)), form_of(at::full({2}, 0.5) * (1 - 1.0 / 6) + one_.sum({0}) / 3 * (1.0 / 6)));
}

TEST_F(BatchStatisticsTest, whatAStepThatWasGivenUpAddedIsForgotten) {
    BatchStatistics statistics(graph_, weights_);
    statistics.begin_step();
    add(statistics, other_);
    statistics.begin_step();
    add(statistics, one_);
    statistics.commit();
    EXPECT_EQ(form_of(weights_.at(kMean)), form_of(at::full({2}, 0.5) * 0.9 + one_.sum({0}) / 3 * 0.1));
}

TEST_F(BatchStatisticsTest, aNormThatDidNotRunStays) {
    BatchStatistics statistics(graph_, weights_);
    statistics.begin_step();
    statistics.commit();
    EXPECT_EQ(weights_.at(kCount).item<int64_t>(), 5);
    EXPECT_EQ(weights_.at(kMean)[1].item<double>(), 0.5);
}

TEST_F(BatchStatisticsTest, opsSeeSumsInPlaceOfTheirOwnBuffersAlone) {
    const BatchStatistics statistics(graph_, weights_);
    const Weights seen = statistics.seen_by_ops();
    for (int buffer : {kMean, kVar, kCount}) EXPECT_FALSE(seen.at(buffer).is_same(weights_.at(buffer)));
    EXPECT_TRUE(seen.at(kOther).is_same(weights_.at(kOther)));
    EXPECT_EQ(seen.owned(), weights_.owned());
    EXPECT_TRUE(BatchStatistics(graph_, no_weights_).seen_by_ops().held().empty()) << "another rank's";
}

TEST_F(BatchStatisticsTest, aVarianceIsNeverNegative) {
    weights_.at(kVar).zero_();
    BatchStatistics statistics(graph_, weights_);
    statistics.begin_step();
    const Weights seen = statistics.seen_by_ops();
    seen.at(kMean).fill_(3);
    seen.at(kVar).fill_(2.9);
    seen.at(kCount).fill_(3);
    statistics.commit();
    EXPECT_EQ(form_of(weights_.at(kVar)), form_of(at::zeros({2})));
}

TEST_F(BatchStatisticsTest, buffersOfHalvesAreSummedUpInFloats) {
    at::Tensor(weights_.at(kMean)).set_data(at::full({2}, 0.5, at::kBFloat16));
    at::Tensor(weights_.at(kVar)).set_data(at::ones({2}, at::kBFloat16));
    BatchStatistics statistics(graph_, weights_);
    statistics.begin_step();
    for (int i = 0; i < 300; ++i) add(statistics, at::ones({3, 2}));  // bfloat16 stops counting at 256
    statistics.commit();
    EXPECT_EQ(weights_.at(kMean).scalar_type(), at::kBFloat16);
    EXPECT_NEAR(weights_.at(kMean)[0].item<double>(), 0.5 * 0.9 + 0.1, 0.005);
}

TEST_F(BatchStatisticsTest, CountersMayHaveOtherShapes) {
    at::Tensor(weights_.at(kCount)).resize_({1}).fill_(5);
    BatchStatistics statistics(graph_, weights_);
    statistics.begin_step();
    add(statistics, one_);
    statistics.commit();
    EXPECT_EQ(weights_.at(kCount).item<int64_t>(), 6);
}

}  // namespace
}  // namespace vpp::test
