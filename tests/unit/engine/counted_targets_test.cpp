// Which targets a loss of classes counts.
#include "engine/counted_targets.hpp"

#include <gtest/gtest.h>

#include <cstring>

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

Plan plan_with(const std::string& kind) {
    Plan plan;
    plan.loss = LossPlan{.kind = kind, .target = "targets"};
    return plan;
}

const std::vector<Draw> kNone{{0}, {2}}, kSome{{0}, {1}};

TEST(CountedTargets, AreAllButThoseOfIgnoreIndex) {
    EXPECT_EQ(count_targets(plan_with("nll"), Masked(), kNone), 0);
    EXPECT_EQ(count_targets(plan_with("nll"), Masked(), kSome), 1);
    Plan other = plan_with("nll"), bytes = plan_with("nll");
    other.loss->ignore_index = 4;
    EXPECT_EQ(count_targets(other, Masked(), kSome), 3);
    bytes.loss->target = "bytes";
    EXPECT_EQ(count_targets(bytes, Masked(), kSome), 2) << "no byte is -100";
    bytes.loss->ignore_index = 7;
    EXPECT_EQ(count_targets(bytes, Masked(), kSome), 1);
}

TEST(CountedTargets, AreToldWhereThereAreNone) {
    for (const char* kind : {"cross_entropy", "nll"}) {
        EXPECT_EQ(all_targets_ignored(plan_with(kind), Masked(), kNone),
                  "all targets there are loss.ignore_index (-100), and a mean of none is NaN");
        EXPECT_EQ(all_targets_ignored(plan_with(kind), Masked(), kSome), "");
    }
}

TEST(CountedTargets, MeanNothingToOtherLosses) {
    EXPECT_EQ(all_targets_ignored(plan_with("mse"), Masked(), kNone), "");
    EXPECT_EQ(all_targets_ignored(Plan(), Masked(), kNone), "") << "the model's own";
    Plan sum = plan_with("nll"), floats = plan_with("nll"), other = plan_with("nll");
    sum.model.loss_reduction = "sum";
    EXPECT_EQ(all_targets_ignored(sum, Masked(), kNone), "") << "it is 0";
    floats.loss->target = "tokens";
    EXPECT_EQ(all_targets_ignored(floats, Masked(), kNone), "");
    other.loss->ignore_index = 3;
    EXPECT_EQ(all_targets_ignored(other, Masked(), kNone), "");
}

}  // namespace
}  // namespace vpp
