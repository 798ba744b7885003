#include "engine/loss_scaler.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>

#include <cmath>

#include "unit/engine/support.hpp"

namespace vpp::test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

LossScaler scaler(double scale, int64_t every) {
    TrainPlan plan;
    plan.loss_scale = scale;
    plan.loss_scale_every = every;
    return LossScaler(plan);
}

/// The scales before each of these steps, and the one behind the last; 'x' is an overflow.
std::vector<double> scales(LossScaler scaler, const std::string& steps) {
    std::vector<double> found{scaler.scale()};
    for (const char step : steps) {
        scaler.update(step == 'x');
        found.push_back(scaler.scale());
    }
    return found;
}

// What torch.amp.GradScaler("cpu", init_scale=8, growth_interval=2) gives for these steps.
TEST(LossScaler, growsAndFallsAsGradScalerDoes) {
    EXPECT_EQ(scales(scaler(8, 2), "...."), (std::vector<double>{8, 8, 16, 16, 32}));
    EXPECT_EQ(scales(scaler(8, 2), ".x.."), (std::vector<double>{8, 8, 4, 4, 8}));
    EXPECT_EQ(scales(scaler(8, 2), "xx..x"), (std::vector<double>{8, 4, 2, 2, 4, 2}));
    EXPECT_EQ(scales(scaler(8, 1), "..."), (std::vector<double>{8, 16, 32, 64}));
    EXPECT_EQ(scales(scaler(0x1p127, 1), "."), (std::vector<double>{0x1p127, 0x1p127})) << "it stays finite";
}

TEST(LossScaler, theDefaultsAreThoseOfGradScaler) {
    EXPECT_EQ(LossScaler(TrainPlan()).scale(), 65536);
    EXPECT_EQ(TrainPlan().loss_scale_every, 2000);
}

TEST(LossScaler, gradientsAreMultipliedWithTheReciprocalInFloat) {
    const at::Tensor a = at::full({3}, 0.7F), b = at::full({2}, 0.7, at::kDouble);
    EXPECT_FALSE(scaler(3, 1).unscale({a, b}));
    EXPECT_EQ(a[2].item<float>(), 0.7F * (1.0F / 3.0F));
    EXPECT_EQ(b[1].item<double>(), 0.7 * static_cast<double>(1.0F / 3.0F));
    EXPECT_FALSE(scaler(3, 1).unscale({}));
}

TEST(LossScaler, oneValueThatIsNotFiniteIsAnOverflow) {
    for (const double bad : {kInf, -kInf, std::nan("")}) {
        const at::Tensor good = at::full({9}, 1.5F), last = at::full({9}, 1.5F);
        last[8].fill_(bad);
        EXPECT_TRUE(scaler(2, 1).unscale({good, last})) << bad;
        EXPECT_TRUE(scaler(1, 1).unscale({last})) << "also where nothing is divided";
    }
}

TEST(LossScaler, theFactorPromotesALossOfLess) {
    const at::Tensor half = at::full({}, 2.0, at::kHalf);
    const at::Tensor scaled = half.mul(scaler(65536, 1).factor());
    EXPECT_EQ(scaled.scalar_type(), at::kFloat);
    EXPECT_EQ(scaled.item<float>(), 131072);
}

TEST(LossScaler, gradientsInHalfPrecisionAreRefused) {
    const at::Tensor half = at::full({2}, 1.0, at::kHalf);
    EXPECT_HAS(error_of(ErrorKind::BadData, [&] { scaler(2, 1).unscale({half}); }),
               "a gradient is in fp16, which the loss scale cannot be taken out of; export the model with parameters "
               "in float32");
}

TEST(LossScaler, aCheckpointKeepsScaleAndSteps) {
    LossScaler before = scaler(3.25, 3);
    before.update(true);
    before.update(false);
    before.update(false);
    LossScaler after = scaler(65536, 3);
    after.restore(before.memory());
    EXPECT_EQ(after.memory(), before.memory());
    EXPECT_EQ(after.scale(), 1.625);
    after.update(false);
    EXPECT_EQ(after.scale(), 3.25) << "two good steps were there already";
    for (const char* damaged : {"", "1", "x 1", "0 1", "-1 1", "inf 1", "nan 1", "1 -1", "1 x", "1 1 1", "1e99 1"}) {
        EXPECT_HAS(error_of(ErrorKind::BadData, [&] { after.restore(damaged); }),
                   "the checkpoint's loss scale cannot be read; go on from another checkpoint")
            << damaged;
    }
}

/// What the ranks of a pipeline saw of each step.
struct Seen {
    std::vector<std::string> steps;  ///< "skipped 16777216" or "updated 8388608", by step
    std::vector<std::map<std::string, std::string>> state;
};

std::vector<Seen> run(Rig& rig, const Program& program, int64_t steps) {
    std::vector<Seen> seen(static_cast<size_t>(program.mesh.num_ranks()));
    with_engines(rig, program, [&](Engine& engine) {
        Seen& own = seen[static_cast<size_t>(engine.transport().rank())];
        for (int64_t step = 0; step < steps; ++step) {
            const StepResult result = engine.run_step(step);
            own.steps.push_back((result.updated ? "updated " : "skipped ") +
                                std::to_string(static_cast<int64_t>(result.loss_scale.value())));
            own.state.push_back(digests(engine.state()));
        }
    });
    return seen;
}

class Overflow : public ::testing::Test {
  protected:
    Rig open(const std::string& model, std::vector<std::string> set) {
        set.insert(set.end(), {"train.precision=\"fp16\"", "optimizer.clip_norm=0"});
        return set_up_tiny(model, folder_.path("."), set);
    }
    TemporaryFolder folder_;
};

TEST_F(Overflow, allRanksSkipTheSameSteps) {
    // Buffers and weights of a step that is skipped are those before it; the first steps overflow, the last do not.
    Rig rig = open("bn_cnn", {"train.loss_scale=67108864"});
    const std::vector<int> legal = rig.legal_cuts();
    const Program program = cut_program(rig.prepared.program, {legal[legal.size() / 3], legal[legal.size() * 2 / 3]},
                                        random_schedule({0, 1, 2}, 3, 5));
    constexpr int64_t kSteps = 14;
    const std::vector<Seen> seen = run(rig, program, kSteps);
    EXPECT_EQ(seen[0].steps.front(), "skipped 67108864");
    EXPECT_HAS(seen[0].steps.back(), "updated ");
    for (const Seen& rank : seen) {
        EXPECT_EQ(rank.steps, seen[0].steps);
        EXPECT_EQ(rank.state.front().count("optimizer.w3.exp_avg"), 0U);
        bool changed = false;
        for (size_t step = 1; step < rank.state.size(); ++step) {
            const bool skipped = rank.steps[step].starts_with("skipped");
            EXPECT_EQ(rank.state[step] == rank.state[step - 1], skipped) << step;
            changed = changed || !skipped;
        }
        EXPECT_TRUE(changed);
    }
}

TEST_F(Overflow, theScaleDecidesNothingElse) {
    // Powers of two that neither overflow nor lose a bit give the same update.
    Rig small = open("mlp", {"train.loss_scale=4096"}), large = open("mlp", {"train.loss_scale=8192"});
    const auto one = run(small, small.prepared.program, 1), other = run(large, large.prepared.program, 1);
    EXPECT_EQ(one[0].steps[0], "updated 4096");
    EXPECT_EQ(one[0].state, other[0].state);
}

TEST_F(Overflow, thatASmallerScaleCannotHelpIsJudged) {
    // The loss is finite, and its gradient is not, whatever the scale.
    Rig rig = open("steep", {"train.loss_scale=2"});
    const std::string text = error_of(ErrorKind::NotFinite, [&] { run(rig, rig.prepared.program, 4); });
    EXPECT_HAS(text, "step 3: the loss is ");
    EXPECT_HAS(text, "first not finite is ");
}

TEST_F(Overflow, aLossThatIsNotFiniteIsNoMatterOfTheScale) {
    Rig rig = open("mlp", {"train.loss_scale=1024"});
    const auto body = [](Engine& engine) {
        for (const StateTensor& entry : engine.tensors()) {
            if (entry.name.starts_with("parameter ")) entry.tensor.fill_(std::nan(""));
        }
        engine.run_step(0);
    };
    EXPECT_HAS(error_of(ErrorKind::NotFinite, [&] { with_engines(rig, rig.prepared.program, body); }),
               "step 1: the loss is nan");
}

TEST_F(Overflow, otherPrecisionsHaveNoScale) {
    for (const char* precision : {"fp32", "bf16"}) {
        Rig rig = set_up_tiny("mlp", folder_.path("."), {std::string("train.precision=\"") + precision + '"'});
        with_engines(rig, rig.prepared.program, [&](Engine& engine) {
            EXPECT_FALSE(engine.loss_scaler().has_value());
            EXPECT_FALSE(engine.run_step(0).loss_scale.has_value());
        });
    }
}

}  // namespace
}  // namespace vpp::test
