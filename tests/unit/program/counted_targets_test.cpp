// Which targets a loss of classes counts.
#include "program/counted_targets.hpp"

#include <gtest/gtest.h>

#include "unit/plan/plan_texts.hpp"

namespace vpp {
namespace {

/// scores, targets -> loss
Graph classes_graph(const std::string& kind, std::vector<int64_t> ignored = {-100}) {
    Graph graph;
    graph.tensors.resize(3);
    graph.tensors[1].dtype = DType::I64;
    for (int i = 0; i < 2; ++i) graph.tensors[static_cast<size_t>(i)].input = i;
    for (int i = 0; i < 3; ++i) graph.values.push_back({"", "Tensor", true, {i}, i == 2 ? 0 : -1, {}});
    graph.ops.resize(1);
    graph.ops[0].kind = kind;
    graph.ops[0].inputs = {0, 1};
    graph.ops[0].outputs = {2};
    graph.ops[0].ignored_targets = std::move(ignored);
    graph.inputs = {{"tokens", 0}, {"targets", 1}};
    graph.loss = 2;
    return graph;
}

TEST(CountedTargets, AreThoseOfALossOfClasses) {
    for (const char* kind : {"aten::cross_entropy_loss", "aten::nll_loss_nd", "aten::nll_loss"}) {
        const auto found = find_counted_targets(classes_graph(kind));
        ASSERT_TRUE(found.has_value()) << kind;
        EXPECT_EQ(found->inputs, std::vector<int>{1});
        EXPECT_EQ(found->ops, std::vector<int>());
        EXPECT_EQ(found->value, 1);
        EXPECT_EQ(found->ignored_text(), "ignore_index (-100)");
    }
    EXPECT_FALSE(find_counted_targets(classes_graph("aten::mse_loss", {})).has_value());
    EXPECT_FALSE(find_counted_targets(classes_graph("aten::nll_loss", {})).has_value()) << "which is not known";
    Graph scores_twice = classes_graph("aten::nll_loss"), none = classes_graph("aten::nll_loss");
    scores_twice.ops[0].inputs = {0, 0};
    EXPECT_FALSE(find_counted_targets(scores_twice).has_value()) << "numbers with a point";
    none.values[2].producer = -1;
    const Error error = test::error_of([&] { counted_targets(Plan(), none); });
    EXPECT_EQ(error.kind(), ErrorKind::Plan);
    EXPECT_TRUE(test::holds(error.what(),
                            "counts before a step targets that are integers and made from data alone, and the loss has "
                            "other ones; let forward return its scores and add a [loss], or take \"mean\""));
}

}  // namespace
}  // namespace vpp
