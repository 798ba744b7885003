// model.init_from: the bits of the run that the weights came from, on any layout, and errors that name the tensors.
#include "engine/initial_weights.hpp"

#include <filesystem>
#include <fstream>
#include <mutex>

#include "app/registries.hpp"
#include "checkpoint/weights_file.hpp"
#include "engine/checkpointing.hpp"
#include "engine/saver.hpp"
#include "engine/verify_layout.hpp"
#include "plan/reader.hpp"
#include "unit/engine/support.hpp"

namespace vpp::test {
namespace {

class InitialWeights : public ::testing::Test {
  protected:
    Rig open(const std::string& model, const std::vector<std::string>& set = {}) {
        return set_up_tiny(model, folder_.path("."), set);
    }

    std::string from(const std::string& file) const { return "model.init_from=\"" + folder_.path(file) + "\""; }

    /// The state after loading what the plan says.
    std::map<std::string, std::string> begin(Rig& rig) {
        std::map<std::string, std::string> state;
        with_engines(rig, rig.prepared.program, [&](Engine& engine) {
            load_initial_weights(engine, rig.plan, rig.prepared.program, log_.log);
            const auto own = digests(engine.state());
            const std::lock_guard<std::mutex> lock(mutex_);
            state.insert(own.begin(), own.end());
        });
        return state;
    }

    /// Two steps of a model; its weights go to w.safetensors, all of it to a checkpoint. Gives the weights' digests.
    std::map<std::string, std::string> train(const std::string& model, const std::string& left_out = "-") {
        Rig rig = open(model, {"run.dir=\"" + folder_.path("run") + "\""});
        std::map<std::string, std::string> state;
        with_engines(rig, rig.prepared.program, [&](Engine& engine) {
            for (int64_t step = 0; step < 2; ++step) engine.run_step(step);
            checkpoint_ = save_checkpoint(engine, rig.plan, rig.prepared.program, 2).folder.string();
            std::vector<at::Tensor> kept;
            std::vector<TensorBytes> tensors;
            for (const StateTensor& entry : engine.state()) {
                if (!entry.name.starts_with("model.")) continue;
                state.merge(digests({entry}));
                kept.push_back(entry.tensor.cpu().contiguous());
                if (entry.name.ends_with(left_out)) continue;
                tensors.push_back(
                    {entry.name.substr(6),
                     *dtype_from_name(entry.tensor.scalar_type() == at::kLong ? "int64" : "float32"),
                     entry.tensor.sizes().vec(),
                     {static_cast<const std::byte*>(kept.back().const_data_ptr()), kept.back().nbytes()}});
            }
            write_weights(folder_.path("w.safetensors"), tensors, {{{"step", "2"}}, {}});
        });
        return state;
    }

    /// What Hugging Face's libraries make of w.safetensors: bfloat16, each tensor in a file of its own with an index,
    /// and without the wrapper that vpp needs, or with one.
    void write_shards(const std::string& folder, const std::string& prefix) const {
        std::filesystem::create_directories(folder_.path(folder));
        const SafetensorsFile whole(folder_.path("w.safetensors"));
        std::string weight_map;
        for (const SafetensorsEntry& entry : whole.entries()) {
            const TensorBytes tensor = *whole.find(entry.name);
            std::vector<std::byte> halves;
            for (size_t i = 0; i < tensor.bytes.size(); i += 4) {
                halves.insert(halves.end(), {tensor.bytes[i + 2], tensor.bytes[i + 3]});
            }
            const std::string file = entry.name + ".safetensors";
            write_safetensors(folder_.path(folder + "/" + file),
                              {{prefix + entry.name, DType::BF16, entry.shape, halves}}, {});
            weight_map += (weight_map.empty() ? "\"" : ", \"") + prefix + entry.name + "\": \"" + file + "\"";
        }
        std::ofstream(folder_.path(folder + "/model.safetensors.index.json"))
            << "{\"weight_map\": {" << weight_map << "}}";
    }

    /// Verifies two stages that begin with the weights of `source` against one.
    void expect_bits_of_one_device(const std::string& model, const std::string& source,
                                   const std::string& more = "train.seed=1") {
        Rig rig = open(model, {source, more, "mesh.pp=2"});
        InProcessOptions options;
        options.num_ranks = 2;
        InProcessWorld(options).run([&](Transport& transport) {
            Sources sources = open_sources(rig.plan, rig.prepared.program, at::kCPU);
            LayoutVerifier verifier(sources, rig.data, transport, 2);
            const VerifyResult result = verifier.compare({rig.plan, rig.prepared.program});
            if (transport.rank() != 0) return;
            EXPECT_TRUE(result.is_equal) << result.difference;
        });
    }

    TemporaryFolder folder_;
    std::string checkpoint_;
    TextLog log_;
    std::mutex mutex_;
};

TEST_F(InitialWeights, FileAndCheckpointGiveTheSameBitsOnAnyLayout) {
    for (const char* model : {"bn_cnn", "tied", "frozen"}) {
        const auto expected = train(model);
        Rig fresh = open(model);
        EXPECT_NE(begin(fresh), expected) << "the control: without the key they are the model file's";
        for (const std::string& source : {from("w.safetensors"), "model.init_from=\"" + checkpoint_ + "\""}) {
            for (const char* layout : {"mesh.pp=1", "mesh.pp=2", "mesh.pp=3"}) {
                Rig rig = open(model, {source, layout});
                EXPECT_EQ(begin(rig), expected) << model << ' ' << source << ' ' << layout;
            }
        }
        std::filesystem::remove_all(folder_.path("run"));
    }
    EXPECT_HAS(log_.text.str(), "starting with the weights of");
    EXPECT_HAS(log_.text.str(), ", of step 2");
}

TEST_F(InitialWeights, ThePipelineStillHasTheBitsOfOneDevice) {
    train("tied");
    expect_bits_of_one_device("tied", from("w.safetensors"));
}

TEST_F(InitialWeights, ShardsOfAnotherPrecisionUnderOtherNamesGiveTheBitsOfTheFile) {
    train("tied");
    write_shards("plain", "");
    write_shards("wrapped", "module.");
    Rig plain = open("tied", {from("plain")});
    const auto expected = begin(plain);
    for (const char* layout : {"mesh.pp=1", "mesh.pp=2"}) {
        Rig wrapped = open("tied", {from("wrapped"), layout});
        EXPECT_EQ(begin(wrapped), expected) << layout;
    }
    EXPECT_HAS(log_.text.str(), "model.init_from: the file's names have 'module.' in front of the model's");
    EXPECT_HAS(log_.text.str(), " tensors converted from bfloat16 to float32, which is exact");
    expect_bits_of_one_device("tied", from("wrapped"));
}

TEST_F(InitialWeights, WhatTheFileHasTooMuchIsSaid) {
    train("mlp");
    const SafetensorsFile whole(folder_.path("w.safetensors"));
    std::vector<TensorBytes> tensors;
    for (const SafetensorsEntry& entry : whole.entries()) tensors.push_back(*whole.find(entry.name));
    tensors.push_back(tensors.front());
    tensors.back().name = "more";
    write_weights(folder_.path("more.safetensors"), tensors, {});
    Rig rig = open("mlp", {from("more.safetensors")});
    begin(rig);
    EXPECT_HAS(log_.text.str(), "model.init_from: not in the model, so not taken: 'more'");
}

TEST_F(InitialWeights, TheCheckpointIsResumedAndTheKeyIsNotLookedAt) {
    train("mlp");
    Rig rig = open("mlp", {from("not_there.safetensors")});
    with_engines(rig, rig.prepared.program, [&](Engine& engine) {
        const CheckpointStore store(folder_.path("run"));
        EXPECT_EQ(resume_checkpoint(engine, rig.plan, rig.prepared.program, store, log_.log)->step, 2);
        const CheckpointStore empty(folder_.path("elsewhere"));
        EXPECT_HAS(error_of(ErrorKind::MissingInput,
                            [&] { resume_checkpoint(engine, rig.plan, rig.prepared.program, empty, log_.log); }),
                   "not_there.safetensors");
    });
    EXPECT_HAS(log_.text.str(), "model.init_from is for a first start");
}

TEST_F(InitialWeights, StatisticsMustBeThereButConstantsNeedNot) {
    train("bn_cnn", "running_mean1");
    Rig rig = open("bn_cnn", {from("w.safetensors")});
    with_engines(rig, rig.prepared.program, [&](Engine& engine) {
        const std::string text = error_of(
            ErrorKind::BadData, [&] { load_initial_weights(engine, rig.plan, rig.prepared.program, log_.log); });
        EXPECT_HAS(text, "has no tensor '");
        EXPECT_HAS(text, "running_mean1'");
    });
}

TEST_F(InitialWeights, WhatTheFileLacksIsFilledFromTheSeed) {
    auto expected = train("mlp", "w2");
    const std::string init = "model.init=[{match=['w2', 'w3'], kind='normal', std=0.1}]";
    Rig seeded = open("mlp", {init});
    expected["model.w2"] = begin(seeded).at("model.w2");
    for (const char* layout : {"mesh.pp=1", "mesh.pp=2", "mesh.pp=3"}) {
        Rig rig = open("mlp", {from("w.safetensors"), init, layout});
        EXPECT_EQ(begin(rig), expected) << layout << ", and w3 is the file's";
    }
    EXPECT_HAS(log_.text.str(), "model.init_from: not in the file, so filled by [[model.init]]: 'w2'\n");
    expect_bits_of_one_device("mlp", from("w.safetensors"), init);
    Rig rig = open("mlp", {from("w.safetensors")});
    with_engines(rig, rig.prepared.program, [&](Engine& engine) {
        EXPECT_HAS(error_of(ErrorKind::BadData, [&] { load_initial_weights(engine, rig.plan, rig.prepared.program); }),
                   "has no tensor 'w2'; a [[model.init]] table whose match names it fills it from the seed");
    });
}

TEST_F(InitialWeights, WeightsOfAnotherModelAreRefused) {
    train("mlp");
    Rig rig = open("bn_cnn", {from("w.safetensors")});
    with_engines(rig, rig.prepared.program, [&](Engine& engine) {
        error_of(ErrorKind::BadData, [&] { load_initial_weights(engine, rig.plan, rig.prepared.program); });
    });
}

}  // namespace
}  // namespace vpp::test
