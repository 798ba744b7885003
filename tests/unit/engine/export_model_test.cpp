// vpp export: what was trained, in files of other programs, bit for bit.
#include "engine/export_model.hpp"

#include <filesystem>
#include <fstream>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/weights_file.hpp"
#include "engine/saver.hpp"
#include "unit/engine/support.hpp"

namespace vpp::test {
namespace {

namespace fs = std::filesystem;

class ExportModel : public ::testing::Test {
  protected:
    std::vector<std::string> run() const { return {"run.dir=\"" + folder_.path("run") + "\""}; }
    Rig open(const std::string& model) { return set_up_tiny(model, folder_.path("."), run()); }

    /// Digests of the weights of an engine that has done nothing, or two steps that are saved.
    std::map<std::string, std::string> weights(Rig& rig, bool trained) {
        std::map<std::string, std::string> found;
        with_engines(rig, rig.prepared.program, [&](Engine& engine) {
            for (int64_t step = 0; trained && step < 2; ++step) engine.run_step(step);
            for (const auto& [name, digest] : digests(engine.state())) {
                if (name.starts_with("model.")) found[name.substr(6)] = digest;
            }
            if (trained) save_checkpoint(engine, rig.plan, rig.prepared.program, 2);
        });
        return found;
    }

    ExportRequest both() const {
        ExportRequest request;
        request.safetensors = folder_.path("out.safetensors");
        request.torchscript = folder_.path("out.pt");
        return request;
    }

    std::map<std::string, std::string> digests_of_file() const {
        std::map<std::string, std::string> found;
        const WeightsFile file(folder_.path("out.safetensors"));
        for (const std::string& name : file.names()) found[name] = to_hex(hash_bytes(file.find(name)->bytes));
        return found;
    }

    TemporaryFolder folder_;
    TextLog log_;
};

TEST_F(ExportModel, BothFilesHaveTheCheckpointsBits) {
    for (const char* model : {"bn_cnn", "tied", "frozen", "two_tower"}) {
        Rig rig = open(model);
        const auto before = weights(rig, false), expected = weights(rig, true);
        ASSERT_NE(before, expected);
        ExportRequest request = both();
        request.overwrite = true;
        const ExportReport report = export_model(rig.plan, request, log_.log);
        EXPECT_EQ(report.step, "2");
        EXPECT_EQ(report.num_tensors, static_cast<int64_t>(expected.size()));
        EXPECT_EQ(report.files.size(), 2U);
        EXPECT_EQ(digests_of_file(), expected) << model;

        Rig exported = set_up(plan_text(folder_.path("out.pt"), tiny_model(model).fields));
        EXPECT_EQ(weights(exported, false), expected) << model;
        fs::remove_all(rig.plan.run.dir);
    }
}

TEST_F(ExportModel, TheFileSaysWhatItIs) {
    Rig rig = open("tied");
    weights(rig, true);
    export_model(rig.plan, both(), log_.log);
    const SafetensorsFile file(folder_.path("out.safetensors"));
    EXPECT_EQ(file.metadata().at("format"), "pt");
    EXPECT_EQ(file.metadata().at("step"), "2");
    EXPECT_EQ(file.metadata().at("samples"), "12");
}

TEST_F(ExportModel, InitialWeightsAreThoseOfTheModelFileOrOfItsKey) {
    Rig rig = open("mlp");
    const auto before = weights(rig, false), trained = weights(rig, true);
    ExportRequest request = both();
    request.initial_weights = true;
    EXPECT_EQ(export_model(rig.plan, request, log_.log).step, "");
    EXPECT_EQ(digests_of_file(), before);
    rig.plan.model.init_from = CheckpointStore(rig.plan.run.dir).list().front().string();
    request.overwrite = true;
    EXPECT_EQ(export_model(rig.plan, request, log_.log).step, "2");
    EXPECT_EQ(digests_of_file(), trained);
}

TEST_F(ExportModel, InitialWeightsFromTheSeedAreThoseOfATraining) {
    const std::string init = "model.init=[{match=['w2', 'w3'], kind='normal', std=0.1}]";
    for (const char* model : {"mlp", "tied"}) {
        Rig rig = set_up_tiny(model, folder_.path("."), {run().front(), init});
        const auto expected = weights(rig, false);
        Rig plain = open(model);
        ASSERT_NE(weights(plain, false), expected);
        ExportRequest request = both();
        request.initial_weights = request.overwrite = true;
        export_model(rig.plan, request, log_.log);
        EXPECT_EQ(digests_of_file(), expected) << model;
    }
    const SafetensorsFile whole(folder_.path("out.safetensors"));
    std::vector<TensorBytes> tensors;
    for (const SafetensorsEntry& entry : whole.entries()) {
        if (entry.name != "w2") tensors.push_back(*whole.find(entry.name));
    }
    write_weights(folder_.path("base.safetensors"), tensors, {});
    const auto expected = digests_of_file();
    Rig rig = set_up_tiny("tied", folder_.path("."), {init});
    rig.plan.model.init_from = folder_.path("base.safetensors");
    ExportRequest request = both();
    request.initial_weights = request.overwrite = true;
    export_model(rig.plan, request, log_.log);
    EXPECT_EQ(digests_of_file(), expected);
    EXPECT_HAS(log_.text.str(), "as [[model.init]] fills them: 'w2'");
    rig.plan.model.init.clear();
    EXPECT_HAS(error_of(ErrorKind::BadData, [&] { export_model(rig.plan, request, log_.log); }),
               "has no tensor 'w2'; a [[model.init]] table");
}

TEST_F(ExportModel, HalfPrecisionWeightsAreWidened) {
    Rig rig = open("mlp");
    weights(rig, true);
    export_model(rig.plan, both(), log_.log);
    // The same file in bfloat16, and what its values are in float32.
    const SafetensorsFile whole(folder_.path("out.safetensors"));
    std::vector<std::vector<std::byte>> halves;
    std::vector<TensorBytes> tensors;
    std::map<std::string, std::string> expected;
    for (const SafetensorsEntry& entry : whole.entries()) {
        const TensorBytes tensor = *whole.find(entry.name);
        std::vector<std::byte> wide(tensor.bytes.size()), half;
        for (size_t i = 0; i < wide.size(); i += 4) {
            for (size_t upper : {i + 2, i + 3}) {
                wide[upper] = tensor.bytes[upper];
                half.push_back(tensor.bytes[upper]);
            }
        }
        expected[entry.name] = to_hex(hash_bytes(wide));
        halves.push_back(std::move(half));
        tensors.push_back({entry.name, DType::BF16, entry.shape, halves.back()});
    }
    write_weights(folder_.path("half.safetensors"), tensors, {});
    rig.plan.model.init_from = folder_.path("half.safetensors");
    ExportRequest request = both();
    request.initial_weights = true;
    request.overwrite = true;
    export_model(rig.plan, request, log_.log);
    EXPECT_EQ(digests_of_file(), expected);
}

TEST_F(ExportModel, NothingIsReplacedUnasked) {
    Rig rig = open("mlp");
    weights(rig, true);
    std::ofstream(folder_.path("out.pt")) << "mine";
    EXPECT_HAS(error_of(ErrorKind::Output, [&] { export_model(rig.plan, both(), log_.log); }), "is there already");
    EXPECT_FALSE(fs::exists(folder_.path("out.safetensors")));
    EXPECT_EQ(fs::file_size(folder_.path("out.pt")), 4U);
}

TEST_F(ExportModel, OneFileForBothIsRefused) {
    Rig rig = open("mlp");
    weights(rig, true);
    ExportRequest request = both();
    request.overwrite = true;
    request.torchscript = folder_.path("./out.safetensors");
    EXPECT_EQ(error_of(ErrorKind::CommandLine, [&] { export_model(rig.plan, request, log_.log); }),
              "--safetensors and --torchscript both write " + request.safetensors + "; name two files");
    EXPECT_FALSE(fs::exists(request.safetensors));
    request.safetensors = "./vpp-export-same";
    request.torchscript = "vpp-export-same";
    EXPECT_HAS(error_of(ErrorKind::CommandLine, [&] { export_model(rig.plan, request, log_.log); }), "name two files");
}

TEST_F(ExportModel, WithoutACheckpointItSaysWhatToDo) {
    const Rig rig = open("mlp");
    EXPECT_HAS(error_of(ErrorKind::MissingInput, [&] { export_model(rig.plan, both(), log_.log); }),
               "there is no checkpoint in " + rig.plan.run.dir +
                   "; train first, name one with --checkpoint, or export what a training begins with: "
                   "--initial-weights");
}

TEST_F(ExportModel, WhatTheFileHasTooMuchOrTooLittleIsSaid) {
    Rig rig = open("bn_cnn");
    weights(rig, true);
    export_model(rig.plan, both(), log_.log);
    const SafetensorsFile whole(folder_.path("out.safetensors"));
    std::vector<TensorBytes> tensors;
    for (const SafetensorsEntry& entry : whole.entries()) {
        if (entry.name.find("running_mean") == std::string::npos) tensors.push_back(*whole.find(entry.name));
    }
    tensors.push_back(tensors.front());
    tensors.back().name = "more";
    ExportRequest request = both();
    request.checkpoint = folder_.path("other.safetensors");
    request.overwrite = true;
    write_weights(request.checkpoint, tensors, {});
    export_model(rig.plan, request, log_.log);
    EXPECT_HAS(log_.text.str(), "not in the model, so not exported: 'more'");
    EXPECT_HAS(log_.text.str(), "as the model file has them: '");
}

TEST_F(ExportModel, DamageAndOtherModelsAreRefused) {
    Rig rig = open("mlp");
    weights(rig, true);
    const fs::path checkpoint = CheckpointStore(rig.plan.run.dir).list().front();
    Rig other = open("bn_cnn");
    error_of(ErrorKind::BadData, [&] { export_model(other.plan, both(), log_.log); });

    std::fstream shard(checkpoint / "shard-00000.safetensors", std::ios::in | std::ios::out | std::ios::binary);
    shard.seekp(-1, std::ios::end);
    shard.put('\x7f');
    shard.close();
    ExportRequest request = both();
    request.checkpoint = checkpoint.string();
    EXPECT_HAS(error_of(ErrorKind::BadData, [&] { export_model(rig.plan, request, log_.log); }), "damaged");
    EXPECT_FALSE(fs::exists(folder_.path("out.safetensors")));
}

}  // namespace
}  // namespace vpp::test
