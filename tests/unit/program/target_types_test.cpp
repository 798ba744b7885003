// Targets of every type against every loss: what is taken here is what LibTorch takes.
#include "program/target_types.hpp"

#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "graph/loss_kinds.hpp"
#include "graph/torch_dtype.hpp"
#include "unit/graph/models.hpp"

namespace vpp {
namespace {

using namespace test;

constexpr int64_t kRows = 2, kClasses = 3;

/// Scores [rows, classes] of x.
const ModuleSpec kScores = linear(4, kClasses);

Plan plan_of_loss(const std::string& kind) {
    Plan plan;
    plan.loss = LossPlan{.kind = kind, .input = 0, .target = "y"};
    return plan;
}

TorchScriptOptions options_with(const Plan& plan, const Field& target) {
    TorchScriptOptions options = options_for({floats("x", {4}), target}, kRows);
    options.loss = plan.loss;
    return options;
}

bool is_taken_here(const Plan& plan, const Field& target) {
    try {
        const TorchScriptOptions options = options_with(plan, target);
        check_target_field(plan, options.fields);
        check_target_of_output(plan, load(kScores, options).graph);
        return true;
    } catch (const Error&) {
        return false;
    }
}

bool is_taken_by_libtorch(const Plan& plan, const Field& target) {
    try {
        LoadedModel model = load(kScores, options_with(plan, target));
        std::vector<int64_t> shape{kRows};
        shape.insert(shape.end(), target.shape.begin(), target.shape.end());
        const at::Tensor ones = at::ones(shape, to_torch(target.dtype));
        run_in_pieces(model, {}, {{"x", values({kRows, 4})}, {"y", ones}}).backward();
        return true;
    } catch (const std::exception&) {
        return false;
    }
}

TEST(TargetTypes, AreTakenAsLibTorchTakesThem) {
    using enum DType;
    int num_taken = 0, num_refused = 0;
    for (const std::string& kind : loss_kinds()) {
        const Plan plan = plan_of_loss(kind);
        for (DType dtype : {F32, F64, F16, BF16, I64, I32, I16, I8, U8, Bool}) {
            std::vector<Field> targets{{"y", dtype, {kClasses}}};
            if (plan.loss->is_over_classes()) targets.push_back({"y", dtype, {}});
            for (const Field& target : targets) {
                const bool is_taken = is_taken_by_libtorch(plan, target);
                EXPECT_EQ(is_taken_here(plan, target), is_taken)
                    << kind << ' ' << name_of(dtype) << shape_text(target.shape);
                ++(is_taken ? num_taken : num_refused);
            }
        }
    }
    EXPECT_GT(num_taken, 15);
    EXPECT_GT(num_refused, 15);
}

TEST(TargetTypes, OfClassesAreThoseOfLossesOverClasses) {
    for (const std::string& kind : loss_kinds()) {
        const TargetTypes types = target_types(kind);
        const bool has_classes = types == TargetTypes::Classes || types == TargetTypes::ClassesOrProbabilities;
        EXPECT_EQ(plan_of_loss(kind).loss->is_over_classes(), has_classes) << kind;
    }
}

}  // namespace
}  // namespace vpp
