// Samples of which a loss of classes counts nothing.
#include "engine/ignored_targets.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace vpp {
namespace {

/// Sample 0 has no target that counts, sample 1 has one, sample 2 none.
class Masked final : public Dataset {
  public:
    const Fields& fields() const override { return fields_; }
    void read(int64_t sample, int field, std::span<std::byte> out) const override {
        EXPECT_EQ(field, 1);
        const int64_t targets[] = {-100, sample == 1 ? 4 : -100};
        std::memcpy(out.data(), targets, out.size());
    }
    std::string digest() const override { return ""; }

  private:
    Fields fields_{{{"tokens", DType::F32, {8}}, {"targets", DType::I64, {2}}}, 3};
};

Plan plan_with(const std::string& kind) {
    Plan plan;
    plan.loss = LossPlan{.kind = kind, .target = "targets"};
    return plan;
}

const std::vector<Draw> kNone{{0}, {2}}, kSome{{0}, {1}};

TEST(IgnoredTargets, AreToldWhereAllAre) {
    for (const char* kind : {"cross_entropy", "nll"}) {
        EXPECT_EQ(all_targets_ignored(plan_with(kind), Masked(), kNone),
                  "all targets there are loss.ignore_index (-100), and a mean of none is NaN");
        EXPECT_EQ(all_targets_ignored(plan_with(kind), Masked(), kSome), "");
    }
}

TEST(IgnoredTargets, MeanNothingToOtherLosses) {
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
