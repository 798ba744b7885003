// The tap takes one value more from the executable of the last op and shows it to nobody else.
#include "engine/output_tap.hpp"

#include <ATen/ops/tensor.h>

#include "unit/engine/support.hpp"

namespace vpp::test {
namespace {

/// Gives the numbers of the values asked for; a tuple of two tensors for value 9.
class CountingSource : public Source {
  public:
    std::unique_ptr<Executable> executable(OpRange, const std::vector<int>&, const std::vector<int>&,
                                           const std::vector<int>& live_outs) override {
        asked_ = live_outs;
        return std::make_unique<Echo>(live_outs);
    }
    at::Tensor weight(int parameter) override { return at::tensor(parameter); }
    std::vector<int> asked_;

  private:
    class Echo : public Executable {
      public:
        explicit Echo(std::vector<int> values) : values_(std::move(values)) {}
        std::vector<c10::IValue> run(std::vector<c10::IValue>, uint64_t) override {
            std::vector<c10::IValue> results;
            for (int value : values_) {
                if (value == 9) {
                    results.emplace_back(c10::ivalue::Tuple::create({at::tensor(1), at::tensor(2)}));
                } else {
                    results.emplace_back(value);
                }
            }
            return results;
        }
        const std::vector<CastInput>& cast_inputs() const override { return cast_inputs_; }

      private:
        std::vector<int> values_;
        std::vector<CastInput> cast_inputs_;
    };
};

Graph graph_of_three_ops(bool has_outputs) {
    Graph graph;
    graph.ops.resize(3);
    graph.ops.back().outputs = {9};
    if (has_outputs) graph.outputs = {{"output1", 0}, {"output2", 1}};
    return graph;
}

TEST(OutputTap, TakesTheOutputsOfTheLastStageByMicrobatch) {
    CountingSource source;
    OutputTap tap(graph_of_three_ops(true));
    TappedSource tapped(source, tap);
    const auto early = tapped.executable({0, 2}, {}, {}, {5});
    EXPECT_EQ(source.asked_, std::vector<int>{5});
    const auto last = tapped.executable({2, 3}, {}, {}, {4});
    EXPECT_EQ(source.asked_, (std::vector<int>{4, 9}));
    std::vector<int> microbatches;
    for (int round = 0; round < 2; ++round) {
        tap.begin([&](int microbatch, const std::vector<at::Tensor>& outputs) {
            microbatches.push_back(microbatch);
            ASSERT_EQ(outputs.size(), 2U);
            EXPECT_EQ(outputs[1].item<int64_t>(), 2);
        });
        EXPECT_EQ(early->run({}, 0).size(), 1U);
        for (int i = 0; i < 2; ++i) EXPECT_EQ(last->run({}, 0).size(), 1U) << "the stage sees what it asked for";
    }
    EXPECT_EQ(microbatches, (std::vector<int>{0, 1, 0, 1}));
    EXPECT_EQ(tapped.weight(3).item<int64_t>(), 3);
}

TEST(OutputTap, DoesNothingWithoutOutputs) {
    CountingSource source;
    OutputTap tap(graph_of_three_ops(false));
    TappedSource tapped(source, tap);
    EXPECT_EQ(tapped.executable({0, 3}, {}, {}, {4})->run({}, 0).size(), 1U);
    EXPECT_EQ(source.asked_, std::vector<int>{4});
}

TEST(OutputTap, RefusesAnotherNumberOfTensors) {
    CountingSource source;
    Graph graph = graph_of_three_ops(true);
    graph.outputs.pop_back();
    OutputTap tap(graph);
    TappedSource tapped(source, tap);
    const auto last = tapped.executable({2, 3}, {}, {}, {});
    tap.begin([](int, const std::vector<at::Tensor>&) {});
    EXPECT_HAS(error_of(ErrorKind::BadData, [&] { last->run({}, 0); }), "2 tensors beside the loss");
}

}  // namespace
}  // namespace vpp::test
