// Which targets a loss of classes counts.
#include "program/counted_targets.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "unit/plan/plan_texts.hpp"

namespace vpp {
namespace {

/// Sample 0 has no target that counts, sample 1 has one, sample 2 none.
class Masked final : public Dataset {
  public:
    const Fields& fields() const override { return fields_; }
    void read(int64_t sample, int field, std::span<std::byte> out) const override {
        EXPECT_NE(field, 0);
        if (field == 2) out[0] = std::byte(sample == 0 ? 7 : 1);
        if (field == 2) return;
        const int64_t targets[] = {-100, sample == 1 ? 4 : -100};
        std::memcpy(out.data(), targets, out.size());
    }
    std::string digest() const override { return ""; }

  private:
    Fields fields_{{{"tokens", DType::F32, {8}}, {"targets", DType::I64, {2}}, {"bytes", DType::U8, {}}}, 3};
};

const std::vector<Draw> kNone{{0}, {2}}, kSome{{0}, {1}};

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
        EXPECT_EQ(found->field, "targets");
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
                            "counts targets that are a data field of integers as it is, and the loss has "
                            "other ones; let forward return its scores and add a [loss], or take \"mean\""));
}

TEST(CountedTargets, AreAllButThoseOfIgnoreIndex) {
    EXPECT_EQ(count_targets({"targets", -100}, Masked(), kNone), 0);
    EXPECT_EQ(count_targets({"targets", -100}, Masked(), kSome), 1);
    EXPECT_EQ(count_targets({"targets", 4}, Masked(), kSome), 3);
    EXPECT_EQ(count_targets({"bytes", -100}, Masked(), kSome), 2) << "no byte is -100";
    EXPECT_EQ(count_targets({"bytes", 7}, Masked(), kSome), 1);
}

TEST(CountedTargets, AreToldWhereThereAreNone) {
    EXPECT_EQ(all_targets_ignored(classes_graph("aten::cross_entropy_loss"), Masked(), kNone),
              "all targets there are ignore_index (-100), and a mean of none is NaN");
    EXPECT_EQ(all_targets_ignored(classes_graph("aten::cross_entropy_loss"), Masked(), kSome), "");
    EXPECT_EQ(all_targets_ignored(classes_graph("aten::nll_loss", {3}), Masked(), kNone), "");
    EXPECT_EQ(all_targets_ignored(classes_graph("aten::mse_loss", {}), Masked(), kNone), "");
}

}  // namespace
}  // namespace vpp
