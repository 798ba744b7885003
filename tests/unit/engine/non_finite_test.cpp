// Who is found to be the first; that a real step is searched right is seen in engine_test.
#include "engine/non_finite.hpp"

#include "unit/engine/support.hpp"

namespace vpp::test {
namespace {

TEST(NonFinite, aGradientThatOverflowsIsNamedWithItsParameter) {
    const TemporaryFolder folder;
    Rig setup = set_up_tiny("mlp", folder.path("."), {"train.on_nonfinite=\"stop\""});
    const std::vector<int> legal = setup.legal_cuts();
    const Program program = cut_program(setup.prepared.program, {legal[legal.size() / 2]}, plain_schedule({0, 1}, 3));
    with_engines(setup, program, [&](Engine& engine) {
        // The output is about 1e16 and its square finite; its gradient times the last weights is not.
        for (const StateTensor& entry : engine.tensors()) {
            if (entry.name == "parameter w3" || entry.name == "parameter b3") entry.tensor.mul_(1e-8);
            if (entry.name == "parameter w4") entry.tensor.mul_(1e25);
        }
        const std::string text = error_of(ErrorKind::NotFinite, [&] { engine.run_step(0); });
        EXPECT_HAS(text, "first not finite is the gradient of '");
        EXPECT_HAS(text, "of stage 1, backward of microbatch 0 (samples ");
    });
}

TEST(NonFinite, aParameterThatWasSoBeforeTheStepIsNamedWithWhatHelps) {
    const TemporaryFolder folder;
    Rig setup = set_up_tiny("mlp", folder.path("."), {"train.on_nonfinite=\"stop\"", "run.dir=\"runs/m\""});
    const std::vector<int> legal = setup.legal_cuts();
    const Program program = cut_program(setup.prepared.program, {legal[legal.size() / 2]}, plain_schedule({0, 1}, 3));
    with_engines(setup, program, [&](Engine& engine) {
        // One on each rank; what is told is the first of the model.
        for (const StateTensor& entry : engine.tensors()) {
            if (entry.name == "parameter w1" || entry.name == "parameter w4") entry.tensor.mul_(INFINITY);
        }
        const std::string later = error_of(ErrorKind::NotFinite, [&] { engine.run_step(1); });
        EXPECT_HAS(later,
                   "the parameter 'w1' is not finite before this step already, by an earlier update. Nothing was "
                   "updated. Go on from a checkpoint before that update, checkpoint.resume = "
                   "\"runs/m/checkpoints/step-...\", or begin anew, checkpoint.resume = \"no\"; with a lower "
                   "optimizer.lr, or with optimizer.clip_norm");
        EXPECT_EQ(later.find("samples"), std::string::npos) << later;
        const std::string at_start = error_of(ErrorKind::NotFinite, [&] { engine.run_step(0); });
        EXPECT_HAS(at_start,
                   "already, as the training began. Nothing was updated. Look at the weights of model.file, or "
                   "of model.init_from");
    });
}

TEST(NonFinite, WeightsThatAnUpdateHasDamagedAreNeitherSkippedNorSaved) {
    const TemporaryFolder folder;
    Rig setup = set_up_tiny("mlp", folder.path("."), {"train.on_nonfinite=\"skip\""});
    with_engines(setup, setup.prepared.program, [&](Engine& engine) {
        engine.check_weights(0);
        engine.run_step(0);
        engine.check_weights(1);
        for (const StateTensor& entry : engine.tensors()) {
            if (entry.name == "parameter w2") entry.tensor.mul_(INFINITY);
        }
        EXPECT_HAS(error_of(ErrorKind::NotFinite, [&] { engine.check_weights(1); }),
                   "an update up to step 1 has made the parameter 'w2' not finite, which is not saved. Go on from a "
                   "checkpoint before that update");
        EXPECT_HAS(error_of(ErrorKind::NotFinite, [&] { engine.run_step(1); }),
                   "the parameter 'w2' is not finite before this step already, by an earlier update");
    });
}

TEST(NonFinite, WeightsThatBeganSoAreThePersonsOwn) {
    const TemporaryFolder folder;
    Rig setup = set_up_tiny("mlp", folder.path("."), {"train.on_nonfinite=\"skip\""});
    with_engines(setup, setup.prepared.program, [&](Engine& engine) {
        for (const StateTensor& entry : engine.tensors()) {
            if (entry.name == "parameter w2") entry.tensor.mul_(INFINITY);
        }
        EXPECT_FALSE(engine.run_step(0).updated);
        engine.check_weights(0);
    });
}

TEST(NonFinite, isToldInOneLine) {
    EXPECT_EQ(to_text(NonFiniteValue{false, 1, 3, 2, "the tensor 'x'"}, 1),
              "the tensor 'x' of stage 2, F of microbatch 3");
    EXPECT_EQ(to_text(NonFiniteValue{true, 1, 0, 1, "the gradient of 'w'"}, 2),
              "the gradient of 'w' of stage 1, backward of microbatch 0 of replica 1");
}

}  // namespace
}  // namespace vpp::test
