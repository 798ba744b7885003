#include "engine/engine.hpp"

#include <atomic>
#include <cmath>

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
            const bool counts = entry.name == "model.n1" || entry.name == "model.n2";
            EXPECT_TRUE(!counts || entry.tensor.item<int64_t>() == 6) << entry.name;
        }
    });
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
            EXPECT_HAS(error.what(), "nothing was updated");
        }
        EXPECT_EQ(digests(engine.state()), before);
    };
    with_engines(setup, cut_in_two(setup), body);
    EXPECT_EQ(refused, 2);
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
        for (const char* name : {"gradient c1\n", "buffer m1\n", "optimizer c1.exp_avg\n"}) EXPECT_HAS(names(), name);
        EXPECT_EQ(names().find("gradient m1"), std::string::npos);
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
    saved.erase("model.v1");
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
    plan.train.steps = 7;
    EXPECT_EQ(total_steps(plan, 95), 7);
}

}  // namespace
}  // namespace vpp::test
