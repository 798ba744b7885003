#include "engine/written_buffers.hpp"

#include "unit/engine/support.hpp"

namespace vpp::test {
namespace {

TEST(WrittenBuffers, onlyWhatOpsWriteIsPutBack) {
    const TemporaryFolder folder;
    Rig setup = set_up_tiny("bn_cnn", folder.path("."));
    Program program = reference_program(setup.prepared.program);
    Weights weights;
    weights.load(*setup.prepared.sources.training, program.training.split, {0});
    const auto& parameters = program.training.graph.parameters;
    std::vector<StateTensor> all;
    for (int i : weights.held()) all.push_back({parameters[static_cast<size_t>(i)].name, weights.at(i).detach()});
    WrittenBuffers buffers(program.training.graph, weights);
    const auto before = digests(all);
    for (const StateTensor& entry : all) entry.tensor.fill_(3);
    buffers.put_back();
    for (const auto& [name, digest] : digests(all)) {
        const bool is_written = name.starts_with("running_") || name.starts_with("num_batches");
        EXPECT_EQ(digest == before.at(name), is_written) << name;
    }
    for (const StateTensor& entry : all) entry.tensor.fill_(5);
    const auto fives = digests(all);
    buffers.remember();
    for (const StateTensor& entry : all) entry.tensor.fill_(3);
    buffers.put_back();
    EXPECT_EQ(digests(all).at("running_mean1"), fives.at("running_mean1"));
}

TEST(WrittenBuffers, parametersThatOpsWriteAreAmongThem) {
    const TemporaryFolder folder;
    Rig setup = set_up_tiny("remembers", folder.path("."));
    std::map<std::string, std::string> before, after;
    with_engines(setup, reference_program(setup.prepared.program), [&](Engine& engine) {
        before = digests(engine.state());
        engine.run_without_update(0);
        after = digests(engine.state());
        EXPECT_EQ(after, before);
        engine.run_step(0);
        after = digests(engine.state());
    });
    for (const char* name : {"scale", "mean", "w2"}) {
        EXPECT_NE(after.at("model." + std::string(name)), before.at("model." + std::string(name))) << name;
    }
}

}  // namespace
}  // namespace vpp::test
