// vpp eval: the same bytes on any layout, the number of the training itself, and errors that say what to do.
#include "engine/evaluate_checkpoint.hpp"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "app/registries.hpp"
#include "data/npy.hpp"
#include "engine/agreement.hpp"
#include "engine/saver.hpp"
#include "plan/reader.hpp"
#include "plan/rules.hpp"
#include "unit/engine/support.hpp"

namespace vpp::test {
namespace {

namespace fs = std::filesystem;

std::string bytes_of_file(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream bytes;
    bytes << file.rdbuf();
    return bytes.str();
}

class EvaluateCheckpoint : public ::testing::Test {
  protected:
    /// Trains three steps on two ranks and saves; gives the training's own evaluation.
    EvaluationResult train(const std::string& model) {
        text_ = plan_with_validation(folder_, model, 11);
        Rig rig = set_up(text_, {"mesh.pp=2"});
        EvaluationResult own;
        with_engines(rig, rig.prepared.program, [&](Engine& engine) {
            for (int64_t step = 0; step < 3; ++step) engine.run_step(step);
            save_checkpoint(engine, rig.plan, rig.prepared.program, 3);
            const EvaluationResult result = engine.evaluate();
            if (engine.transport().rank() == 0) own = result;
        });
        return own;
    }

    EvaluationReport evaluate(const std::vector<std::string>& set, const EvaluationRequest& request) {
        Plan plan = parse_plan(text_, "test.toml", set, registered_names());
        const int world = natural_world(plan);
        plan = resolve_plan(std::move(plan), world);
        set_threads(plan);
        InProcessOptions options;
        options.num_ranks = world;
        EvaluationReport report;
        log_.text.str("");
        InProcessWorld(options).run([&](Transport& transport) {
            const Datasets data = open_validation(plan);
            const EvaluationWish wish = evaluation_wish(plan, data, request);
            Prepared prepared = agree_on_program(transport, plan, data,
                                                 [&] { return prepare_evaluation(plan, data, wish, test_device()); });
            prepared.sources.place_on(test_device());
            EXPECT_FALSE(prepared.program.has_training());
            const EvaluationReport own = evaluate_checkpoint(plan, prepared, data, wish, request, transport, log_.log);
            if (transport.rank() == 0) report = own;
        });
        return report;
    }

    EvaluationRequest outputs_to(const std::string& name) const {
        EvaluationRequest request;
        request.outputs = folder_.path(name);
        return request;
    }

    TemporaryFolder folder_;
    std::string text_;
    TextLog log_;
};

const std::vector<std::vector<std::string>> kLayouts{
    {"mesh.pp=1"},
    {"mesh.pp=2"},
    {"mesh.pp=3", "pipeline.split_method=\"PARAMETERS\""},
    {"mesh.pp=2", "pipeline.virtual_chunks=2", "pipeline.schedule_type=\"INTERLEAVED_1F1B\"",
     "pipeline.num_microbatches=2", "train.global_batch_size=4"},
    {"mesh.pp=4", "pipeline.schedule_type=\"GPIPE\"", "pipeline.overlap_p2p_comm=false"}};

TEST_F(EvaluateCheckpoint, GivesTheNumberOfTheTrainingOnAnyLayout) {
    for (const char* model : {"mlp", "dropout", "share"}) {
        const EvaluationResult expected = train(model);
        EXPECT_EQ(expected.samples, 11);
        for (const auto& layout : kLayouts) {
            const EvaluationReport report = evaluate(layout, {});
            EXPECT_EQ(report.result.loss, expected.loss) << model << " " << layout[0];
            EXPECT_EQ(report.result.samples, 11);
            EXPECT_EQ(report.step, 3);
        }
    }
}

TEST_F(EvaluateCheckpoint, OutputsHaveTheSameBytesOnAnyLayout) {
    const EvaluationResult expected = train("outputs");
    std::vector<std::string> files;
    for (size_t i = 0; i < kLayouts.size(); ++i) {
        const EvaluationReport report = evaluate(kLayouts[i], outputs_to(std::to_string(i)));
        EXPECT_EQ(report.result.loss, expected.loss);
        ASSERT_EQ(report.files.size(), 4U) << "not the loss, the sum and the number";
        for (size_t k = 0; k < report.files.size(); ++k) {
            const std::string bytes = bytes_of_file(report.files[k]);
            if (i == 0) files.push_back(bytes);
            EXPECT_EQ(bytes, files[k]) << report.files[k] << " " << kLayouts[i][0];
        }
        EXPECT_HAS(log_.text.str(), "not written, since dim 0 is not the samples: output4");
    }
}

TEST_F(EvaluateCheckpoint, OutputsAreWhatForwardReturnsAtItsEnd) {
    train("outputs");
    const EvaluationReport report = evaluate({"mesh.pp=2"}, outputs_to("o"));
    const NpyFile out(folder_.path("o/output1.npy")), h(folder_.path("o/output2.npy")),
        early(folder_.path("o/output3.npy")), x(folder_.path("o/output6.npy"));
    const auto at = [](const NpyFile& file, int i) { return float_at(file, i); };
    EXPECT_EQ(x.shape(), (std::vector<int64_t>{11, 8}));
    const NpyFile given(folder_.path("vx.npy")), target(folder_.path("vy.npy"));
    double squares = 0;
    for (int i = 0; i < 88; ++i) {
        EXPECT_EQ(at(x, i), at(given, i)) << "in the order of the data";
        EXPECT_NEAR(std::tanh(at(h, i) / 2), at(early, i), 1e-6) << "h was doubled in place after its use";
        squares += std::pow(at(out, i) - at(target, i), 2);
    }
    EXPECT_NEAR(squares / 88, report.result.loss, 1e-6);
}

TEST_F(EvaluateCheckpoint, TakesSoManyBatchesAndDropsTheRestWhenTold) {
    train("mlp");
    EvaluationRequest request;
    request.batches = 1;
    EXPECT_EQ(evaluate({"mesh.pp=2"}, request).result.samples, 6);
    request.batches = 9;
    EXPECT_EQ(evaluate({"mesh.pp=2"}, request).result.samples, 11);
    request.drop_last = true;
    EXPECT_EQ(evaluate({"mesh.pp=2"}, request).result.samples, 10);
    EXPECT_EQ(evaluate({"mesh.pp=2", "train.eval_batches=1"}, {}).result.samples, 6);
    request.batches = 0;
    EXPECT_HAS(error_of(ErrorKind::BadData,
                        [&] {
                            evaluate({"pipeline.num_microbatches=1", "train.global_batch_size=64"}, request);
                        }),
               "the validation data have 11 samples, which fill no microbatch of 64; leave --drop-last out");
}

TEST_F(EvaluateCheckpoint, WeightsComeFromWhereItIsSaid) {
    train("mlp");
    const EvaluationReport newest = evaluate({"mesh.pp=2"}, {});
    EXPECT_HAS(newest.checkpoint.string(), "step-00000003");
    EvaluationRequest request;
    request.checkpoint = newest.checkpoint.string();
    EXPECT_EQ(evaluate({"run.dir=\"elsewhere\""}, request).result.loss, newest.result.loss);
    EXPECT_HAS(error_of(ErrorKind::MissingInput, [&] { evaluate({"run.dir=\"elsewhere\""}, {}); }),
               "--initial-weights");
    request = {};
    request.initial_weights = true;
    const EvaluationReport initial = evaluate({"run.dir=\"elsewhere\"", "mesh.pp=2"}, request);
    EXPECT_NE(initial.result.loss, newest.result.loss);
    EXPECT_TRUE(initial.checkpoint.empty());
}

TEST_F(EvaluateCheckpoint, ACheckpointOfAnotherModelIsSaidOrRefused) {
    train("share");
    const EvaluationReport own = evaluate({"mesh.pp=2"}, {});
    EXPECT_EQ(log_.text.str().find("another model"), std::string::npos);
    EvaluationRequest request;
    request.checkpoint = own.checkpoint.string();
    save_tiny_model("mlp", folder_.path("mlp.pt"));  // parameters of the same names and shapes
    evaluate({"model.file=\"" + folder_.path("mlp.pt") + "\""}, request);
    EXPECT_HAS(log_.text.str(), "the checkpoint was made with another model");
    save_tiny_model("frozen", folder_.path("frozen.pt"));
    const std::string text =
        error_of(ErrorKind::BadData, [&] { evaluate({"model.file=\"" + folder_.path("frozen.pt") + "\""}, request); });
    EXPECT_HAS(text, "model.");
}

TEST_F(EvaluateCheckpoint, APartialMicrobatchThatTheModelCannotTakeIsSaidBeforeAnythingRuns) {
    text_ = plan_with_validation(folder_, "baked", 11);
    EvaluationRequest request;
    request.initial_weights = true;
    EXPECT_HAS(error_of(ErrorKind::BadData, [&] { evaluate({"mesh.pp=2"}, request); }),
               "the last microbatch of the validation data has 1 sample instead of 2");
    request.drop_last = true;
    EXPECT_EQ(evaluate({"mesh.pp=2"}, request).result.samples, 10);
}

TEST_F(EvaluateCheckpoint, OutputsThatAreThereStay) {
    train("outputs");
    evaluate({"mesh.pp=2"}, outputs_to("o"));
    const std::string before = bytes_of_file(folder_.path("o/output1.npy"));
    EvaluationRequest request = outputs_to("o");
    request.initial_weights = true;
    EXPECT_HAS(error_of(ErrorKind::Output, [&] { evaluate({"mesh.pp=2"}, request); }), "--overwrite");
    EXPECT_EQ(bytes_of_file(folder_.path("o/output1.npy")), before);
    request.overwrite = true;
    evaluate({"mesh.pp=2"}, request);
    EXPECT_NE(bytes_of_file(folder_.path("o/output1.npy")), before);
}

TEST_F(EvaluateCheckpoint, RefusesWhatCannotBeGiven) {
    text_ = plan_with_validation(folder_, "mlp", 11);
    EvaluationRequest request = outputs_to("o");
    request.initial_weights = true;
    EXPECT_HAS(error_of(ErrorKind::BadData, [&] { evaluate({}, request); }), "forward returns the loss alone");
    save_tiny_model("mlp", folder_.path("mlp.pt"));
    text_ = plan_text(folder_.path("mlp.pt"), tiny_model("mlp").fields);
    EXPECT_HAS(error_of(ErrorKind::Plan, [&] { evaluate({}, {}); }),
               "evaluation needs validation data, and the plan names none; add data.val or data.val_split");
}

}  // namespace
}  // namespace vpp::test
