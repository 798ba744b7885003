#include "engine/replica_pieces.hpp"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>

#include "unit/engine/support.hpp"

namespace vpp::test {
namespace {

Graph graph_of(const std::vector<DType>& dtypes) {
    Graph graph;
    for (DType dtype : dtypes) graph.parameters.push_back({"p", {}, dtype, {10, 10}, false, true, false, {}});
    return graph;
}

TEST(ReplicaPieces, comeBackAsTheyWere) {
    const Graph graph = graph_of({DType::F32, DType::F64, DType::F32});
    const PieceMessage form(graph, {{0, 64, 100}, {1, 0, 7}, {2, 0, 64}});
    const at::Tensor w = at::arange(100, at::kFloat).view({10, 10}), v = at::arange(100, at::kDouble);
    const Buffer message = form.make({elements_of(w, {0, 64, 100}), elements_of(v, {1, 0, 7}), {}});
    EXPECT_EQ(message.bytes().size(), form.size_bytes());
    const std::vector<at::Tensor> elements = form.read(message);
    ASSERT_EQ(elements.size(), 3U);
    EXPECT_TRUE(at::equal(elements[0], at::arange(64, 100, at::kFloat)));
    EXPECT_TRUE(at::equal(elements[1], at::arange(7, at::kDouble)));
    EXPECT_FALSE(elements[2].defined());
}

TEST(ReplicaPieces, keepTheirMessagesMemory) {
    const Graph graph = graph_of({DType::F32});
    const PieceMessage form(graph, {{0, 0, 100}});
    std::vector<at::Tensor> elements;
    {
        const Buffer message = form.make({at::arange(100, at::kFloat)});
        elements = form.read(message);
    }
    EXPECT_TRUE(at::equal(elements[0], at::arange(100, at::kFloat)));
}

TEST(ReplicaPieces, areAPartWhereThatIsCarried) {
    const Graph graph = graph_of({DType::F32, DType::F64, DType::F32});
    const PieceMessage form(graph, {{0, 64, 100}, {1, 0, 7}, {2, 0, 64}}, at::kCPU);
    std::vector<at::Tensor> elements;
    {
        const at::Tensor w = at::arange(100, at::kFloat), v = at::arange(100, at::kDouble);
        const Buffer message = form.make({elements_of(w, {0, 64, 100}), {}, elements_of(v.to(at::kFloat), {2, 0, 64})});
        EXPECT_EQ(message.bytes().size(), 64U);
        EXPECT_EQ(message.size_bytes(), form.size_bytes());
        elements = form.read(message);
    }
    EXPECT_TRUE(at::equal(elements[0], at::arange(64, 100, at::kFloat)));
    EXPECT_FALSE(elements[1].defined());
    EXPECT_TRUE(at::equal(elements[2], at::arange(64, at::kFloat)));
    Buffer without = form.make({{}, {}, {}});
    without.set_part({});
    EXPECT_HAS(error_of(ErrorKind::RanksDisagree, [&] { form.read(without); }), "has another size than it must have");
}

TEST(ReplicaPieces, ofAnotherSizeAreRefused) {
    const Graph graph = graph_of({DType::F32});
    const PieceMessage form(graph, {{0, 0, 64}});
    Buffer longer(form.size_bytes() + 1), shorter = form.make({at::arange(64, at::kFloat)});
    shorter.resize(form.size_bytes() - 1);
    const std::string size = std::to_string(form.size_bytes());
    EXPECT_EQ(error_of(ErrorKind::RanksDisagree, [&] { form.read(longer); }),
              "a message between replicas has another size than it must have (got " +
                  std::to_string(form.size_bytes() + 1) + " bytes, expected " + size + ")");
    error_of(ErrorKind::RanksDisagree, [&] { form.read(shorter); });
    EXPECT_THROW(form.make({at::arange(65, at::kFloat)}), Error);
}

}  // namespace
}  // namespace vpp::test
