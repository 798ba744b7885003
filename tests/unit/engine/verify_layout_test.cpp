// Negative controls: each breaks one thing that a pipeline could do wrong, and must be found and named by kind, name,
// step, microbatch and size.
#include "engine/verify_layout.hpp"

#include <cstring>

#include "stage/message.hpp"
#include "support/far_device.hpp"
#include "unit/engine/support.hpp"

namespace vpp::test {
namespace {

constexpr int64_t kComparedSteps = 3;

class VerifyLayout : public ::testing::Test {
  protected:
    void open(const std::string& model) {
        rig_.emplace(
            set_up_tiny(model, folder_.path("."), {"pipeline.num_microbatches=4", "train.global_batch_size=8"}));
    }

    Layout layout(const std::vector<int>& rank_of_stage) const {
        const std::vector<int> legal = rig_->legal_cuts();
        const size_t num_stages = rank_of_stage.size();
        std::vector<int> cuts;
        for (size_t i = 1; i < num_stages; ++i) cuts.push_back(legal[legal.size() * i / num_stages]);
        return {rig_->plan, cut_program(rig_->prepared.program, cuts, plain_schedule(rank_of_stage, 4))};
    }

    VerifyResult compare(const Layout& layout, Faults faults = {}, int world = 2) {
        VerifyResult result;
        InProcessOptions options;
        options.num_ranks = world;
        InProcessWorld(options).run([&](Transport& job) {
            LayoutVerifier verifier(rig_->prepared.sources, rig_->data, job, kComparedSteps, faults);
            const VerifyResult own = verifier.compare(layout);
            if (job.rank() == 0) result = own;
        });
        return result;
    }

    TemporaryFolder folder_;
    std::optional<Rig> rig_;
};

TEST_F(VerifyLayout, FindsNothingWhereNothingIsWrong) {
    for (const char* model : {"share", "bn_cnn", "dropout", "frozen"}) {
        open(model);
        const VerifyResult result = compare(layout({0, 1, 0}));
        EXPECT_TRUE(result.is_equal) << model << ": " << result.difference;
        EXPECT_EQ(result.by_kind.at("loss"), 4 * kComparedSteps);
        EXPECT_EQ(result.by_kind.at("norm"), kComparedSteps);
        EXPECT_GT(result.by_kind.at("gradient"), kComparedSteps);
        EXPECT_GE(result.by_kind.at("parameter"), result.by_kind.at("gradient"));
        EXPECT_EQ(result.by_kind.count("buffer"), std::string(model) == "bn_cnn" ? 1U : 0U);
        EXPECT_GT(result.by_kind.at("optimizer"), result.by_kind.at("gradient"));
    }
}

TEST_F(VerifyLayout, StepsWithoutAnUpdateAreCounted) {
    rig_.emplace(set_up_tiny("mlp", folder_.path("."),
                             {"pipeline.num_microbatches=4", "train.global_batch_size=8", "train.precision=\"fp16\"",
                              "train.loss_scale=1e30"}));
    const VerifyResult result = compare(layout({0, 1}));
    EXPECT_TRUE(result.is_equal) << result.difference;
    EXPECT_EQ(result.by_kind.at(kSkipped), kComparedSteps);
    open("mlp");
    EXPECT_EQ(compare(layout({0, 1})).by_kind.count(kSkipped), 0U);
}

/// On a device whose memory the CPU cannot read: what is forgotten there ends the process.
TEST_F(VerifyLayout, EveryModelHasTheBitsOfOneDeviceOnAnotherDevice) {
    if (test_device().is_cuda()) GTEST_SKIP() << "LibTorch takes one kind of device beside the CPU";
    for (const TinyModel& model : tiny_models()) {
        open(model.name);
        rig_->prepared.sources.place_on(far_device());
        const int64_t copies = num_far_copies(), give_backs = num_far_give_backs();
        const VerifyResult result = compare(layout({0, 1, 0}));
        EXPECT_TRUE(result.is_equal) << model.name << ": " << result.difference;
        EXPECT_GT(num_far_copies(), copies) << "nothing was computed there";
        EXPECT_EQ(num_far_give_backs(), give_backs + 2 * 2) << "by both ranks, behind the reference and the pipeline";
    }
}

/// Any order of actions with recompute, at a precision.
class VerifyPrecision : public VerifyLayout {
  protected:
    void open(const std::string& model, const std::string& precision) {
        rig_.emplace(set_up_tiny(
            model, folder_.path("."),
            {"pipeline.num_microbatches=4", "train.global_batch_size=8", "train.precision=\"" + precision + '"'}));
    }
    void expect_equal_at_every_precision(at::Device device) {
        for (const char* precision : {"bf16", "fp16"}) {
            for (const TinyModel& model : tiny_models()) {
                open(model.name, precision);
                rig_->prepared = prepare(rig_->plan, rig_->data, device);
                rig_->prepared.sources.place_on(device);
                for (uint64_t seed : {1, 2}) {
                    const VerifyResult result = compare(random_layout({0, 1, 0, 1}, seed));
                    EXPECT_TRUE(result.is_equal) << precision << ' ' << model.name << ": " << result.difference;
                }
            }
        }
    }
    Layout random_layout(const std::vector<int>& rank_of_stage, uint64_t seed) const {
        Layout made = layout(rank_of_stage);
        std::vector<int> cuts;
        for (size_t i = 1; i < made.program.training.split.stages.size(); ++i) {
            cuts.push_back(made.program.training.split.stages[i].ops.begin);
        }
        made.program = cut_program(rig_->prepared.program, cuts, random_schedule(rank_of_stage, 4, seed),
                                   random_ranges(rig_->graph(), cuts, seed));
        return made;
    }
};

TEST_F(VerifyPrecision, EveryPrecisionHasTheBitsOfOneDevice) {
    expect_equal_at_every_precision(test_device());
}

/// Where autocast has the lists of cards: more ops are in float32, so values of both dtypes cross.
TEST_F(VerifyPrecision, EveryPrecisionHasTheBitsOfOneDeviceOnAnotherDevice) {
    if (test_device().is_cuda()) GTEST_SKIP() << "LibTorch takes one kind of device beside the CPU";
    expect_equal_at_every_precision(far_device());
}

TEST_F(VerifyPrecision, AValueCrossesInItsOwnDtype) {
    const std::map<std::string, DType> dtypes{{"fp32", DType::F32}, {"bf16", DType::BF16}, {"fp16", DType::F16}};
    for (const auto& [precision, dtype] : dtypes) {
        open("mlp", precision);
        const Graph& graph = rig_->graph();
        for (const GraphOp& op : graph.ops) {
            const int tensor = graph.values.at(static_cast<size_t>(op.outputs.at(0))).tensors.at(0);
            const DType made = graph.tensors.at(static_cast<size_t>(tensor)).dtype;
            EXPECT_EQ(made, op.kind == "aten::mse_loss" ? DType::F32 : dtype) << precision << ' ' << op.kind;
        }
    }
}

// Negative control: a pipeline whose ops run as they are, under a plan that says bf16, is found.
TEST_F(VerifyPrecision, OpsThatAreNotCastAreFound) {
    open("mlp", "fp32");
    Sources as_they_are = std::move(rig_->prepared.sources);
    open("mlp", "bf16");
    rig_->prepared.sources = std::move(as_they_are);
    const VerifyResult result = compare(layout({0, 1}));
    EXPECT_FALSE(result.is_equal);
    EXPECT_EQ(result.different_step, 1);
    EXPECT_HAS(result.difference, "loss of microbatch 0");
}

TEST_F(VerifyLayout, RanksThatALayoutDoesNotUseWait) {
    open("mlp");
    for (const auto& ranks : {std::vector<int>{0}, {0, 1}, {0, 1, 2}}) {
        EXPECT_TRUE(compare(layout(ranks), {}, 4).is_equal) << ranks.size();
    }
}

TEST_F(VerifyLayout, OneReferenceServesAllLayoutsOfItsMicrobatches) {
    open("mlp");
    InProcessOptions options;
    options.num_ranks = 2;
    InProcessWorld(options).run([&](Transport& job) {
        LayoutVerifier verifier(rig_->prepared.sources, rig_->data, job, kComparedSteps);
        for (const auto& ranks : {std::vector<int>{0, 1}, {0, 1, 0}, {0, 1, 0, 1}}) verifier.compare(layout(ranks));
        EXPECT_EQ(verifier.num_references(), 1);
    });
}

/// Flips a bit of the last eight elements of one message: some of a gradient may be zero, where it is absorbed.
class FlippingTransport : public PassingTransport {
  public:
    FlippingTransport(Transport& inner, Direction direction, int microbatch, int step)
        : PassingTransport(inner), direction_(direction), microbatch_(microbatch), step_(step) {}
    Buffer receive(int peer, const Channel& channel) override {
        Buffer message = PassingTransport::receive(peer, channel);
        if (channel.direction == direction_ && channel.microbatch == microbatch_ && seen_++ == step_) {
            for (size_t i = 0; i < 8; ++i) message.bytes()[message.bytes().size() - 2 - 4 * i] ^= std::byte{0x40};
        }
        return message;
    }

  private:
    Direction direction_;
    int microbatch_, step_;
    int seen_ = 0;
};

Faults flip(Direction direction, int microbatch, int step) {
    Faults faults;
    faults.transport = [=](Transport& inner) {
        return std::make_unique<FlippingTransport>(inner, direction, microbatch, step);
    };
    return faults;
}

TEST_F(VerifyLayout, AFlippedBitOfAnActivationIsALossOfThatMicrobatch) {
    open("mlp");
    const VerifyResult result = compare(layout({0, 1}), flip(Direction::Forward, 2, 1));
    EXPECT_FALSE(result.is_equal);
    EXPECT_EQ(result.different_step, 2);
    EXPECT_HAS(result.difference, "loss of microbatch 2, step 2: reference ");
    EXPECT_HAS(result.difference, " ulp");
    EXPECT_LT(result.difference.size(), 140U) << "an ulp of float32, not of the double it is kept in";
}

/// Two stages of a plan with validation data.
Layout evaluated_layout(const Rig& rig) {
    const std::vector<int> legal = rig.legal_cuts();
    Plan plan = rig.plan;
    plan.mesh.pp = plan.pipeline.num_stages = 2;
    plan.train.eval_batches = 1;
    return {plan, with_layout(rig.prepared.program, plan, std::vector{legal[legal.size() / 2]})};
}

TEST_F(VerifyLayout, BehindTheLastStepAnEvaluationIsCompared) {
    rig_.emplace(set_up(plan_with_validation(folder_, "mlp", 7)));
    const Layout layout = evaluated_layout(*rig_);
    ASSERT_TRUE(layout.program.evaluation);
    const VerifyResult result = compare(layout);
    EXPECT_TRUE(result.is_equal) << result.difference;
    EXPECT_EQ(result.by_kind.at("evaluation"), 2) << "loss and samples";
    // Microbatch 1 of three steps, then of the evaluation.
    const VerifyResult broken = compare(layout, flip(Direction::Forward, 1, kComparedSteps));
    EXPECT_FALSE(broken.is_equal);
    EXPECT_EQ(broken.different_step, kComparedSteps);
    EXPECT_HAS(broken.difference, "evaluation loss, step 3: reference ");
}

TEST_F(VerifyLayout, AFlippedBitOfAGradientIsAGradientFromThatMicrobatchOn) {
    open("mlp");
    for (int microbatch : {0, 1, 2, 3}) {
        const VerifyResult result = compare(layout({0, 1}), flip(Direction::Backward, microbatch, 2));
        EXPECT_EQ(result.different_step, 3);
        EXPECT_HAS(result.difference, "gradient b1 (stage 0, rank 0), step 3, from microbatch " +
                                          std::to_string(microbatch) + " on: element [");
        EXPECT_HAS(result.difference, " of 8 elements differ, by up to ");
    }
}

TEST_F(VerifyLayout, ASkippedBackwardIsAGradientFromThatMicrobatchOn) {
    open("mlp");
    // The last one: an earlier one would leave others waiting for their turn.
    Faults faults;
    faults.program = [](Program& program) {
        std::erase(program.training.schedule.actions[0], Action{ActionKind::B, 0, 3});
    };
    const VerifyResult result = compare(layout({0, 0}), faults);
    EXPECT_EQ(result.different_step, 1);
    EXPECT_HAS(result.difference, "gradient b1 (stage 0, rank 0), step 1, from microbatch 3 on: element [");
}

/// Forward messages of microbatches 1 and 2 change places.
class SwappingTransport : public PassingTransport {
  public:
    using PassingTransport::PassingTransport;
    void send(int peer, const Channel& channel, Buffer message) override {
        Channel other = channel;
        const bool swapped =
            channel.direction == Direction::Forward && (channel.microbatch == 1 || channel.microbatch == 2);
        if (swapped) other.microbatch = 3 - channel.microbatch;
        PassingTransport::send(peer, other, std::move(message));
    }
};

TEST_F(VerifyLayout, SwappedMicrobatchesAreALoss) {
    open("mlp");
    Faults faults;
    faults.transport = [](Transport& inner) { return std::make_unique<SwappingTransport>(inner); };
    const VerifyResult result = compare(layout({0, 1}), faults);
    EXPECT_EQ(result.different_step, 1);
    EXPECT_HAS(result.difference, "loss of microbatch 1, step 1: reference ");
}

TEST_F(VerifyLayout, SwappedForwardsAreABufferFromTheFirstOfThemOn) {
    open("bn_cnn");
    Faults faults;
    faults.program = [](Program& program) {
        std::swap(program.training.schedule.actions[0][2], program.training.schedule.actions[0][3]);
    };
    const VerifyResult result = compare(layout({0, 0}), faults);
    EXPECT_EQ(result.different_step, 1);
    EXPECT_HAS(result.difference, "buffer running_mean1 (stage 0, rank 0), step 1, from microbatch 3 on: element [")
        << "with both of them done; in front of that there is only one";
}

TEST_F(VerifyLayout, APerturbedBitOfAWeightIsThatElementByOneUlp) {
    open("mlp");
    Faults faults;
    faults.after_step = [](Engine& engine, int64_t step) {
        for (const StateTensor& entry : engine.tensors()) {
            if (step != 1 || entry.name != "parameter w4") continue;
            flip_bits(entry.tensor, 10, 1);
        }
    };
    const VerifyResult result = compare(layout({0, 1}), faults);
    EXPECT_EQ(result.different_step, 2);
    EXPECT_EQ(result.num_different, 1);
    EXPECT_HAS(result.difference, "parameter w4 (stage 1, rank 1), step 2: element [1, 2]: reference ");
    EXPECT_HAS(result.difference, ", 1 ulp; 1 of 64 elements differ, by up to 1 ulp");
}

TEST_F(VerifyLayout, APerturbedOptimizerStateIsNamedWithItsPlace) {
    open("mlp");
    Faults faults;
    faults.after_step = [](Engine& engine, int64_t) {
        for (const StateTensor& entry : engine.tensors()) {
            if (entry.name != "optimizer w1.exp_avg_sq") continue;
            flip_bits(entry.tensor, 0, 2);
        }
    };
    const VerifyResult result = compare(layout({0, 1}), faults);
    EXPECT_HAS(result.difference, "optimizer w1.exp_avg_sq (stage 0, rank 0), step 1: element [0, 0]: ");
    EXPECT_HAS(result.difference, ", 2 ulps;");
}

TEST_F(VerifyLayout, AGradientThatIsNotThereIsNamed) {
    open("mlp");
    Faults faults;
    faults.program = [](Program& program) {
        for (int m = 0; m < 4; ++m) std::erase(program.training.schedule.actions[0], Action{ActionKind::B, 0, m});
    };
    const VerifyResult result = compare(layout({0, 0}), faults);
    EXPECT_HAS(result.difference, "gradient b1 (stage 0, rank 0), step 1, from microbatch 0 on: the pipeline has none");
}

TEST_F(VerifyLayout, WhatDoesNotComeBackIsSaidToBeSo) {
    open("mlp");
    bool done = false;
    Faults faults;
    faults.after_step = [&](Engine& engine, int64_t) {
        for (const StateTensor& entry : engine.tensors()) {
            if (done || entry.name != "parameter w4") continue;
            flip_bits(entry.tensor, 0, 1);
            done = true;
        }
    };
    EXPECT_HAS(compare(layout({0, 1}), faults).difference,
               "parameter w4 (stage 1, rank 1), step 1: it did not come back");
}

TEST(KeepMicrobatches, LeavesTheOthersOutEverywhere) {
    Schedule schedule = plain_schedule({0, 0}, 3);
    schedule.actions[0].push_back({ActionKind::ReduceGrad, 0, -1});
    keep_microbatches(schedule, 1);
    EXPECT_EQ(schedule.actions[0].size(), 5U);
    EXPECT_EQ(schedule.num_microbatches, 3);
}

TEST_F(VerifyLayout, ARecordWithoutAnythingIsABug) {
    open("bn_cnn");
    const Program& program = rig_->prepared.program;
    const RunRecord whole = run_reference(*rig_, 1);
    EXPECT_NO_THROW(check_complete(whole, program));
    for (const char* name : {"loss of microbatch 3", "norm of all gradients", "parameter c1", "buffer running_mean2"}) {
        RunRecord part = whole;
        ASSERT_EQ(part.steps[0].erase(name), 1U);
        EXPECT_HAS(error_of(ErrorKind::Bug, [&] { check_complete(part, program); }), name);
    }
    RunRecord part = whole;
    std::erase_if(part.steps[0], [](const auto& entry) { return entry.first.starts_with("gradient"); });
    EXPECT_HAS(error_of(ErrorKind::Bug, [&] { check_complete(part, program); }), "no gradient");
}

}  // namespace
}  // namespace vpp::test
