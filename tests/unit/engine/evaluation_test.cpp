// Evaluation: the mean over all samples whatever the sizes of groups and ranks, and not a bit of the training changes.
#include <cmath>

#include "unit/engine/support.hpp"

namespace vpp::test {
namespace {

EvaluationResult evaluate(Rig& setup) {
    EvaluationResult result;
    with_engines(setup, setup.prepared.program, [&](Engine& engine) {
        const EvaluationResult own = engine.evaluate();
        if (engine.transport().rank() == 0) result = own;
    });
    return result;
}

class Evaluation : public ::testing::Test {
  protected:
    Rig open(const std::string& model, int64_t num_validation, const std::vector<std::string>& set = {}) {
        return set_up(plan_with_validation(folder_, model, num_validation), set);
    }
    TemporaryFolder folder_;
};

TEST_F(Evaluation, isTheMeanOverTheSamplesAlsoWhenTheyFillNoGroup) {
    // 11 samples in groups of 3 x 2: the last group has microbatches of 2, 2 and 1; of 3 x 1: 1 and 1 and none.
    Rig pairs = open("mlp", 11), singles = open("mlp", 11, {"train.global_batch_size=3"});
    const EvaluationResult a = evaluate(pairs), b = evaluate(singles);
    EXPECT_EQ(a.samples, 11);
    EXPECT_EQ(b.samples, 11);
    EXPECT_NEAR(a.loss, b.loss, 1e-6);
    Rig one = open("mlp", 1);
    EXPECT_EQ(evaluate(one).samples, 1);
    EXPECT_TRUE(std::isfinite(evaluate(one).loss));
}

TEST_F(Evaluation, aSumOverSamplesIsDividedByTheirNumber) {
    Rig sum = open("mlp", 9, {"model.loss_reduction=\"sum\""}), mean = open("mlp", 9);
    // The model itself gives a mean a microbatch, so as a "sum" every microbatch counts once.
    EXPECT_LT(evaluate(sum).loss, evaluate(mean).loss);
}

TEST_F(Evaluation, aLossThatIsNotFiniteIsToldWithItsSamples) {
    Rig setup = open("mlp", 11);
    with_engines(setup, setup.prepared.program, [&](Engine& engine) {
        EXPECT_EQ(engine.evaluate().remark, "");
        for (const StateTensor& entry : engine.tensors()) {
            if (entry.name == "parameter w1") entry.tensor.mul_(INFINITY);
        }
        const EvaluationResult result = engine.evaluate();
        EXPECT_FALSE(std::isfinite(result.loss));
        EXPECT_EQ(result.remark,
                  "the evaluation's loss is not finite: that of samples 0, 1 of the validation data is the first");
    });
}

TEST_F(Evaluation, takesAsManyGroupsAsThePlanSays) {
    Rig setup = open("mlp", 30, {"train.eval_batches=2"});
    EXPECT_EQ(evaluate(setup).samples, 12);
}

TEST_F(Evaluation, hasTheSameBitsOnAnyNumberOfRanks) {
    for (const char* model : {"share", "containers", "dropout", "views"}) {
        Rig one = open(model, 11);
        const double expected = evaluate(one).loss;
        for (const auto& set :
             {std::vector<std::string>{"mesh.pp=2"},
              {"mesh.pp=2", "pipeline.virtual_chunks=2", "pipeline.schedule_type=\"INTERLEAVED_1F1B\""}}) {
            Rig more = open(model, 11, set);
            EXPECT_EQ(evaluate(more).loss, expected) << model;
        }
    }
}

TEST_F(Evaluation, takesGradientsOfWhatCameFromAnotherStage) {
    Rig one = open("forces", 11);
    Rig all = open("forces", 11, {"mesh.pp=8", "pipeline.split_method=\"UNIFORM\"", "pipeline.uniform_split_ops=true"});
    ASSERT_EQ(all.graph().num_legal_cuts(), 7) << "each is used, so that the place comes from another stage";
    EXPECT_EQ(evaluate(all).loss, evaluate(one).loss);
}

TEST_F(Evaluation, drawsNoRandomNumbersInEvaluationMode) {
    Rig setup = open("mlp", 6);
    const double before = evaluate(setup).loss;
    EXPECT_EQ(evaluate(setup).loss, before);
}

TEST_F(Evaluation, afterEveryStepChangesNoBit) {
    for (const char* model : {"dropout", "share", "always_trains"}) {
        for (const auto& set : {std::vector<std::string>{}, {"mesh.pp=2"}}) {
            Rig setup = open(model, 11, set);
            const Program& program = setup.prepared.program;
            const RunRecord plain = run_program(setup, program, 4);
            int evaluations = 0;
            const RunRecord evaluated = run_program(setup, program, 4, {}, [&](Engine& engine, int64_t) {
                engine.evaluate();
                ++evaluations;
            });
            EXPECT_GE(evaluations, 4);
            const VerifyResult result = compare_runs(plain, evaluated);
            EXPECT_TRUE(result.is_equal) << model << ": " << result.difference;
        }
    }
}

/// On a card (VPP_TEST_DEVICE=cuda) from step 3 on; 11 samples fill a group and a half.
TEST_F(Evaluation, hasTheSameBitsWhereOpsAreRecorded) {
    for (const char* model : {"share", "containers"}) {
        std::vector<std::vector<double>> losses;
        for (const char* recorded : {"true", "false"}) {
            Rig setup = open(model, 11, {"mesh.pp=2", std::string("pipeline.cuda_graphs=") + recorded});
            std::vector<double>& own = losses.emplace_back();
            bool is_recorded = false;
            run_program(setup, setup.prepared.program, 6, {}, [&](Engine& engine, int64_t) {
                const double loss = engine.evaluate().loss;
                if (engine.transport().rank() != 0) return;
                own.push_back(loss);
                is_recorded = engine.evaluator().executor().recorded_segments() == 1;
                EXPECT_EQ(engine.recording_problems(), "");
            });
            EXPECT_EQ(is_recorded, test_device().is_cuda() && std::string(recorded) == "true");
        }
        EXPECT_EQ(losses[0].size(), 6U);
        EXPECT_EQ(losses[0], losses[1]) << model;
        EXPECT_NE(losses[0].front(), losses[0].back()) << "the control";
    }
}

TEST_F(Evaluation, needsValidationData) {
    Rig setup = set_up_tiny("mlp", folder_.path("."));
    with_engines(setup, setup.prepared.program, [](Engine& engine) {
        EXPECT_FALSE(engine.can_evaluate());
        EXPECT_HAS(error_of(ErrorKind::Bug, [&] { engine.evaluate(); }), "validation data");
    });
}

}  // namespace
}  // namespace vpp::test
