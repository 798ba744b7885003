#include "graph/graph.hpp"

#include <gtest/gtest.h>

#include "unit/graph/graphs.hpp"

namespace vpp {
namespace {

TEST(Graph, CountsTheLegalCutsBetweenOps) {
    EXPECT_EQ(Graph{}.num_legal_cuts(), 0);
    EXPECT_EQ(test::chain({1}).num_legal_cuts(), 0);
    Graph graph = test::chain({1, 1, 1, 1});
    EXPECT_EQ(graph.num_legal_cuts(), 3);
    graph.cuts[2] = {false, "why"};
    EXPECT_EQ(graph.num_legal_cuts(), 2);
    graph.cuts[0].legal = false;
    EXPECT_EQ(graph.num_legal_cuts(), 2) << "there is no cut before the first op";
    EXPECT_EQ(Graph{}.commonest_refusal().second, 0);
    graph.cuts = {{true, ""}, {false, "a"}, {false, "b"}, {true, ""}, {false, "b"}};
    EXPECT_EQ(graph.commonest_refusal(), std::pair(std::string("b"), 2));
}

TEST(Graph, ATensorRequiresAGradientFromTheOpBehindTheOneThatGivesItOne) {
    GraphTensor tensor;
    EXPECT_FALSE(tensor.requires_grad_at(9));
    tensor.gradient_flips = {3, 5};
    EXPECT_FALSE(tensor.requires_grad_at(3)) << "the op itself takes it as it was";
    EXPECT_TRUE(tensor.requires_grad_at(4));
    EXPECT_TRUE(tensor.requires_grad_at(5));
    EXPECT_FALSE(tensor.requires_grad_at(6));
    tensor.requires_grad = true;
    EXPECT_TRUE(tensor.requires_grad_at(0));
    EXPECT_FALSE(tensor.requires_grad_at(4));
}

TEST(Graph, BytesFollowShapeAndType) {
    GraphTensor tensor;
    tensor.shape = {2, 3};
    EXPECT_EQ(tensor.bytes(), 24);
    tensor.dtype = DType::BF16;
    EXPECT_EQ(tensor.bytes(), 12);
    GraphParameter scalar;
    scalar.dtype = DType::I64;
    EXPECT_EQ(scalar.bytes(), 8);
}

TEST(Graph, AModelWithoutParametersIsRefused) {
    Graph graph;
    graph.parameters.emplace_back().is_buffer = true;
    try {
        check_has_parameters(graph, SourcePosition{"plan.toml", 2, 1, ""});
        FAIL() << "buffers are not trained";
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::BadData);
        EXPECT_EQ(error.problems().front().message,
                  "the model has no parameters, so there is nothing to train; torch.jit.freeze and "
                  "torch.jit.optimize_for_inference make constants of them: save what torch.jit.script or "
                  "torch.jit.trace gave");
        EXPECT_EQ(error.problems().front().position->line, 2);
    }
    graph.parameters.emplace_back();
    EXPECT_NO_THROW(check_has_parameters(graph)) << "frozen ones are as asked";
}

}  // namespace
}  // namespace vpp
