#include "engine/engine.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <atomic>
#include <cmath>
#include <mutex>

#include "data/held_out.hpp"
#include "unit/engine/support.hpp"

namespace vpp::test {
namespace {

class Engines : public ::testing::Test {
  protected:
    Rig open(const std::string& model, const std::vector<std::string>& set = {}) {
        return set_up_tiny(model, folder_.path("."), set);
    }
    static Program cut_in_two(const Rig& setup) {
        const std::vector<int> legal = setup.legal_cuts();
        return cut_program(setup.prepared.program, {legal[legal.size() / 2]}, plain_schedule({0, 1}, 3));
    }
    TemporaryFolder folder_;
};

TEST_F(Engines, aStepGivesTheSameResultOnEveryRank) {
    Rig setup = open("mlp");
    std::vector<StepResult> results(2);
    with_engines(setup, cut_in_two(setup),
                 [&](Engine& engine) { results[static_cast<size_t>(engine.transport().rank())] = engine.run_step(0); });
    const StepResult& result = results[0];
    ASSERT_EQ(result.microbatch_losses.size(), 3u);
    double mean = 0;
    for (double loss : result.microbatch_losses) mean += loss;
    EXPECT_EQ(result.loss, mean / 3);
    EXPECT_GT(result.grad_norm, 0);
    EXPECT_EQ(result.clipped, result.grad_norm > 0.7);
    EXPECT_EQ(result.lr, 0.01);
    EXPECT_GT(result.seconds, 0);
    EXPECT_EQ(result.loss, results[1].loss);
    EXPECT_EQ(result.grad_norm, results[1].grad_norm);
    EXPECT_EQ(result.microbatch_losses, results[1].microbatch_losses);
}

TEST_F(Engines, aSummedLossIsNotDividedByTheMicrobatches) {
    Rig mean = open("mlp"), sum = open("mlp", {"model.loss_reduction=\"sum\""});
    double mean_norm = 0, sum_norm = 0, sum_loss = 0;
    std::vector<double> losses;
    with_engines(mean, reference_program(mean.prepared.program),
                 [&](Engine& e) { mean_norm = e.run_step(0).grad_norm; });
    with_engines(sum, reference_program(sum.prepared.program), [&](Engine& e) {
        const StepResult result = e.run_step(0);
        sum_norm = result.grad_norm, sum_loss = result.loss, losses = result.microbatch_losses;
    });
    EXPECT_EQ(sum_loss, losses[0] + losses[1] + losses[2]);
    EXPECT_NEAR(sum_norm, 3 * mean_norm, 1e-4 * sum_norm);
}

TEST_F(Engines, frozenAndGradientlessParametersStayUntouchedUnderDecay) {
    Rig setup = open("frozen");
    std::map<std::string, std::string> before, after;
    std::atomic<int> optimizer_entries{0};
    with_engines(setup, cut_in_two(setup), [&](Engine& engine) {
        before.merge(digests(engine.state()));
        for (int64_t step = 0; step < 3; ++step) engine.run_step(step);
        for (const auto& [name, digest] : digests(engine.state())) {
            after[name] = digest;
            const bool idle = name.find("idle") != std::string::npos || name.find("cut_off") != std::string::npos;
            const bool is_optimizer = name.starts_with("optimizer.");
            EXPECT_FALSE(is_optimizer && idle) << name << ": no gradient, no state";
            optimizer_entries += is_optimizer;
        }
    });
    for (const char* name : {"model.w2", "model.b2", "model.idle", "model.cut_off"}) {
        EXPECT_EQ(before.at(name), after.at(name)) << name;
    }
    for (const char* name : {"model.w1", "model.b1", "model.w3", "model.b3"})
        EXPECT_NE(before.at(name), after.at(name));
    EXPECT_EQ(optimizer_entries, 4 * 3) << "two moments and a count of steps for each trained parameter";
    EXPECT_EQ(before.size(), 8u) << "every parameter has one owner";
}

TEST_F(Engines, buffersAdvanceInEveryMicrobatch) {
    Rig setup = open("bn_cnn");
    with_engines(setup, cut_in_two(setup), [&](Engine& engine) {
        engine.run_step(0);
        engine.run_step(1);
        for (const StateTensor& entry : engine.state()) {
            const bool counts =
                entry.name == "model.num_batches_tracked1" || entry.name == "model.num_batches_tracked2";
            EXPECT_TRUE(!counts || entry.tensor.item<int64_t>() == 6) << entry.name;
        }
    });
}

const std::vector<std::string> kDeferred{"pipeline.deferred_batch_norm=true"};

using Tensors = std::map<std::string, at::Tensor>;

Tensors copies(const std::vector<StateTensor>& tensors) {
    Tensors found;
    for (const StateTensor& entry : tensors) found[entry.name] = entry.tensor.cpu().clone();
    return found;
}

/// What one device has before and after its first step.
struct FirstStep {
    Tensors before, after;
    std::vector<double> losses;
};

FirstStep first_step(Rig& setup) {
    FirstStep found;
    with_engines(setup, reference_program(setup.prepared.program), [&](Engine& engine) {
        found.before = copies(engine.state());
        found.losses = engine.run_step(0).microbatch_losses;
        found.after = copies(engine.state());
    });
    return found;
}

/// What the first batch norm of bn_cnn takes in, for every microbatch of the first step.
std::vector<at::Tensor> first_norm_inputs(const Rig& setup, const at::Tensor& filter) {
    const int64_t size = setup.prepared.program.microbatch_size;
    const SampleOrder order(setup.data.training->fields().num_samples, setup.plan.train.seed, setup.plan.data.shuffle);
    const std::vector<Draw> draws = order.draws(0, *setup.plan.train.global_batch_size);
    const Loader loader(*setup.data.training, setup.graph());
    std::vector<at::Tensor> inputs;
    for (size_t begin = 0; begin < draws.size(); begin += static_cast<size_t>(size)) {
        const at::Tensor x = loader.load(0, std::span(draws).subspan(begin, static_cast<size_t>(size)));
        inputs.push_back(at::conv2d(x.to(test_device()), filter.to(test_device()), {}, 1, 1));
    }
    return inputs;
}

TEST_F(Engines, deferredBatchNormTakesOneUpdateWithTheWholeBatch) {
    Rig setup = open("bn_cnn", kDeferred);
    const FirstStep step = first_step(setup);
    at::Tensor sum = at::zeros({4}, test_device()), squares = at::zeros({4}, test_device());
    int64_t count = 0;
    for (const at::Tensor& h : first_norm_inputs(setup, step.before.at("model.c1").detach())) {
        sum += h.sum({0, 2, 3});
        squares += (h * h).sum({0, 2, 3});
        count += h.numel() / 4;
    }
    const at::Tensor mean = sum / count, var = squares / count - mean * mean;
    Tensors expected{{"running_mean1", at::zeros_like(mean) * (1 - 0.1) + mean * 0.1},
                     {"running_var1", at::ones_like(var) * (1 - 0.1) + var * 0.1},
                     {"num_batches_tracked1", at::ones({}, at::kLong)}};
    for (const auto& [name, tensor] : expected) {
        EXPECT_TRUE(at::equal(step.after.at("model." + name), tensor.cpu())) << name;
    }
    EXPECT_EQ(step.after.at("model.num_batches_tracked2").item<int64_t>(), 1);
}

TEST_F(Engines, deferredBatchNormChangesNothingButTheStatistics) {
    Rig usual = open("bn_cnn"), deferred = open("bn_cnn", kDeferred);
    const FirstStep a = first_step(usual), b = first_step(deferred);
    EXPECT_EQ(a.losses, b.losses);
    for (const auto& [name, tensor] : a.after) {
        const bool is_statistic = name.starts_with("model.running") || name.starts_with("model.num_batches");
        EXPECT_EQ(at::equal(b.after.at(name), tensor), !is_statistic) << name;
    }
}

TEST_F(Engines, deferredBatchNormOfOneMicrobatchIsTheUsualOneWithTheBiasedVariance) {
    const std::vector<std::string> one{"pipeline.num_microbatches=1"};
    Rig usual = open("bn_cnn", one), deferred = open("bn_cnn", {one[0], kDeferred[0]});
    const Tensors a = first_step(usual).after, b = first_step(deferred).after;
    const double n = 6 * 8 * 8;  // values a channel
    for (const char* index : {"1", "2"}) {
        const auto of = [&](const Tensors& all, const char* name) {
            return all.at(std::string("model.") + name + index);
        };
        EXPECT_TRUE(at::allclose(of(a, "running_mean"), of(b, "running_mean"), 1e-5, 1e-6));
        const at::Tensor unbiased = of(a, "running_var") - 0.9, biased = of(b, "running_var") - 0.9;
        EXPECT_TRUE(at::allclose(biased, unbiased * ((n - 1) / n), 1e-5, 1e-6));
        EXPECT_FALSE(at::allclose(biased, unbiased, 1e-5, 1e-6)) << "the control: 1/384 is seen";
        EXPECT_EQ(of(b, "num_batches_tracked").item<int64_t>(), 1);
    }
}

// The step is given up behind its last action, as one whose loss is not finite.
TEST_F(Engines, aStepWithoutUpdateLeavesNoSumsOfDeferredBatchNorm) {
    const auto second_try_differs = [&](const std::vector<std::string>& set) {
        Rig setup = open("bn_cnn", set);
        std::map<std::string, std::string> again, once;
        const Program program = reference_program(setup.prepared.program);
        with_engines(setup, program, [&](Engine& engine) {
            EXPECT_THROW(engine.run_step(0, [] { throw Error(ErrorKind::NotFinite, "given up"); }), Error);
            engine.run_step(0);
            again = digests(engine.state());
        });
        with_engines(setup, program, [&](Engine& engine) {
            engine.run_step(0);
            once = digests(engine.state());
        });
        return again != once;
    };
    EXPECT_FALSE(second_try_differs(kDeferred));
    EXPECT_TRUE(second_try_differs({})) << "the control: statistics of microbatches have advanced";
}

// The loss is finite, the update throws the weights far off, the next loss is not finite.
TEST_F(Engines, aLossThatIsNotFiniteStopsEveryRankBeforeTheUpdate) {
    Rig setup = open("overflows", {"optimizer.kind=\"sgd\"", "optimizer.lr=1e25", "optimizer.weight_decay=0",
                                   "optimizer.momentum=0.9"});
    std::atomic<int> refused{0};
    const auto body = [&](Engine& engine) {
        const StepResult first = engine.run_step(0);
        EXPECT_TRUE(std::isfinite(first.loss));
        const auto before = digests(engine.state());
        try {
            engine.run_step(1);
        } catch (const Error& error) {
            ++refused;
            EXPECT_EQ(error.kind(), ErrorKind::NotFinite) << error.what();
            EXPECT_HAS(error.what(), "step 2: the loss is");
            EXPECT_HAS(error.what(), "Nothing was updated");
        }
        EXPECT_EQ(digests(engine.state()), before);
    };
    with_engines(setup, cut_in_two(setup), body);
    EXPECT_EQ(refused, 2);
}

// Sample 9 is in the second microbatch of step 2; the statistics of batch norm have met it when the loss is known.
TEST_F(Engines, aSkippedStepChangesNothing) {
    const std::string text = plan_with_vectors(folder_, "always_trains", 9);
    const auto state_after = [&](const std::vector<int64_t>& steps) {
        Rig setup = set_up(text, {"train.on_nonfinite=\"skip\""});
        std::map<std::string, std::string> state;
        with_engines(setup, cut_in_two(setup), [&](Engine& engine) {
            for (int64_t step : steps) {
                const StepResult result = engine.run_step(step);
                EXPECT_EQ(result.updated, step != 1);
                EXPECT_EQ(result.remark.empty(), step != 1) << result.remark;
            }
            const auto own = digests(engine.state());
            static std::mutex mutex;
            const std::lock_guard lock(mutex);
            state.insert(own.begin(), own.end());
        });
        return state;
    };
    EXPECT_EQ(state_after({0, 1, 2}), state_after({0, 2}));
    EXPECT_NE(state_after({0, 2}), state_after({0})) << "the control: a step changes something";
}

TEST_F(Engines, whereAStepLeavesTheFiniteNumbersIsNamedOnEveryRank) {
    const std::string text = plan_with_vectors(folder_, "mlp", 9);
    for (const bool is_cut : {false, true}) {
        Rig setup = set_up(text);
        std::atomic<int> named{0};
        const Program program = is_cut ? cut_in_two(setup) : reference_program(setup.prepared.program);
        with_engines(setup, program, [&](Engine& engine) {
            engine.run_step(0);
            try {
                engine.run_step(1);
            } catch (const Error& error) {
                const std::string what = error.what();
                EXPECT_HAS(what, "step 2: the loss is nan");
                EXPECT_HAS(what, is_cut ? "of stage 0, F of microbatch 1 (samples 8, 9)"
                                        : "first not finite is the loss of stage 0, F of microbatch 1 (samples 8, 9)");
                EXPECT_HAS(what, "; the field 'x' of ");
                EXPECT_HAS(what,
                           "px.npy, sample 9 is not finite in the data already. Nothing was updated. Mend the data");
                ++named;
            }
        });
        EXPECT_EQ(named, is_cut ? 2 : 1);
    }
}

TEST_F(Engines, samplesOfASplitAreNamedAsTheirFilesCountThem) {
    const detail::HeldOut held_out(12, 6, Plan().train.seed);
    const int64_t first = held_out.sample(Subset::Train, 4), second = held_out.sample(Subset::Train, 5);
    Rig setup = set_up(plan_with_vectors(folder_, "mlp", first), {"data.val_split=0.5"});
    with_engines(setup, reference_program(setup.prepared.program), [&](Engine& engine) {
        EXPECT_HAS(error_of(ErrorKind::NotFinite, [&] { engine.run_step(0); }),
                   "(samples " + std::to_string(first) + ", " + std::to_string(second) + ")");
    });
}

TEST_F(Engines, aSpikeIsMetAsThePlanSays) {
    Rig setup = open("mlp", {"train.on_spike=\"stop\""});
    with_engines(setup, cut_in_two(setup), [&](Engine& engine) {
        std::string memory = "0";
        for (int i = 0; i < 16; ++i) memory += " 0x1p-20";  // far below what the model's loss is
        engine.guard().restore(memory);
        EXPECT_HAS(error_of(ErrorKind::NotFinite, [&] { engine.run_step(0); }), "step 1: the loss jumped to");
    });
}

TEST_F(Engines, tensorsAreNamedByWhatTheyAre) {
    Rig setup = open("bn_cnn");
    with_engines(setup, reference_program(setup.prepared.program), [&](Engine& engine) {
        const auto names = [&] {
            std::string text;
            for (const StateTensor& entry : engine.tensors()) text += entry.name + "\n";
            return text;
        };
        EXPECT_HAS(names(), "parameter c1\n");
        EXPECT_EQ(names().find("gradient"), std::string::npos) << "undefined, not zero, before the first step";
        engine.run_step(0);
        for (const char* name : {"gradient c1\n", "buffer running_mean1\n", "optimizer c1.exp_avg\n"})
            EXPECT_HAS(names(), name);
        EXPECT_EQ(names().find("gradient running_mean1"), std::string::npos);
    });
}

TEST_F(Engines, stateThatIsLoadedGoesOnWithTheSameBits) {
    Rig setup = open("bn_cnn");
    const Program program = reference_program(setup.prepared.program);
    std::map<std::string, at::Tensor> saved;
    std::map<std::string, std::string> unbroken, resumed;
    with_engines(setup, program, [&](Engine& engine) {
        for (int64_t step = 0; step < 2; ++step) engine.run_step(step);
        for (const StateTensor& entry : engine.state()) saved[entry.name] = entry.tensor.clone();
        engine.run_step(2);
        unbroken = digests(engine.tensors());
    });
    const StateReader read = [&](const std::string& name, at::ScalarType,
                                 const std::vector<int64_t>&) -> std::optional<at::Tensor> {
        const auto found = saved.find(name);
        return found == saved.end() ? std::nullopt : std::optional(found->second);
    };
    with_engines(setup, program, [&](Engine& engine) {
        engine.load_state(read);
        engine.run_step(2);
        resumed = digests(engine.tensors());
    });
    EXPECT_EQ(unbroken, resumed);
    saved.erase("model.running_var1");
    EXPECT_HAS(error_of(ErrorKind::Bug, [&] { with_engines(setup, program, [&](Engine& e) { e.load_state(read); }); }),
               "every parameter and buffer");
}

TEST_F(Engines, needsAsManyRanksAsTheMesh) {
    Rig setup = open("mlp");
    const Program program = cut_in_two(setup);
    const auto body = [&](Transport& transport) {
        Engine(setup.plan, program, setup.prepared.sources, setup.data, transport);
    };
    EXPECT_HAS(error_of(ErrorKind::Bug, [&] { InProcessWorld({.num_ranks = 1}).run(body); }), "the ranks of the mesh");
}

TEST(TotalSteps, areStepsOrWholeBatchesOfTheEpochs) {
    Plan plan;
    plan.train.global_batch_size = 10;
    EXPECT_EQ(total_steps(plan, 95), 0);
    plan.train.epochs = 2;
    EXPECT_EQ(total_steps(plan, 95), 19);
    EXPECT_EQ(total_steps(plan, 3), 1) << "at least one";
    plan.lr_schedule.warmup_steps = 19;
    EXPECT_EQ(total_steps(plan, 95), 19);
    plan.lr_schedule.warmup_steps = 20;
    plan.positions["lr_schedule.warmup_steps"] = {"plan.toml", 7, 1, "warmup_steps = 20"};
    EXPECT_HAS(error_of(ErrorKind::Plan, [&] { total_steps(plan, 95); }),
               "plan.toml:7:1: the warm-up is longer than the training (got warmup_steps 20, train.epochs 2 = 19 "
               "steps)");
    EXPECT_HAS(error_of(ErrorKind::Plan, [&] { total_steps(plan, 3); }), "train.epochs 2 = 1 step)");
    plan.lr_schedule.warmup_steps = 0;
    plan.train.epochs = 1'000'000'000;
    EXPECT_EQ(total_steps(plan, 9'223'372'036), 922'337'203'600'000'000);
    EXPECT_HAS(error_of(ErrorKind::Plan, [&] { total_steps(plan, 9'223'372'037); }),
               "train.epochs are too many: samples of a training are counted in 63 bits (got 1000000000 epochs of "
               "9223372037 samples)");
    plan.train.steps = 7;
    EXPECT_EQ(total_steps(plan, 95), 7);
}

}  // namespace
}  // namespace vpp::test
