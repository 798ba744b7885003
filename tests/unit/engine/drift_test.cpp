#include "engine/drift.hpp"

#include "engine/engine.hpp"
#include "unit/engine/support.hpp"

namespace vpp::test {
namespace {

/// What a job of two replicas says that compares them in every step; after the first one a bit of rank 1 changes.
std::string drift_of(const std::string& damaged, int64_t drift_every = 1) {
    const TemporaryFolder folder;
    std::vector<std::string> set = with_replicas(2);
    set.push_back("train.drift_every=" + std::to_string(drift_every));
    Rig setup = set_up_tiny("bn_cnn", folder.path("."), set);
    std::string text = "";
    try {
        with_engines(setup, setup.prepared.program, [&](Engine& engine) {
            engine.run_step(0);
            for (const StateTensor& entry : engine.tensors()) {
                if (engine.transport().rank() != 1 || entry.name != damaged) continue;
                flip_bits(entry.tensor, 0, 1);
            }
            engine.run_step(1);
        });
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::RanksDisagree);
        text = error.what();
    }
    return text;
}

TEST(Drift, replicasThatAreEqualGoOn) {
    EXPECT_EQ(drift_of(""), "");
}

TEST(Drift, namesTheFirstParameterAndTheRanks) {
    const TemporaryFolder folder;
    const Rig setup = set_up_tiny("bn_cnn", folder.path("."));
    const std::string& name = setup.graph().parameters[1].name;
    const std::string text = drift_of("parameter " + name);
    EXPECT_HAS(text, "by the end of step 2");
    EXPECT_HAS(text, "the parameter " + name + " is not the same");
    EXPECT_HAS(text, "rank 0: ");
    EXPECT_HAS(text, "rank 1: ");
}

TEST(Drift, isLookedForWhenThePlanSaysSo) {
    const TemporaryFolder folder;
    const Rig setup = set_up_tiny("bn_cnn", folder.path("."));
    const std::string name = "parameter " + setup.graph().parameters[1].name;
    EXPECT_EQ(drift_of(name, 3), "");
    EXPECT_EQ(drift_of(name, 0), "");
    EXPECT_NE(drift_of(name, 2), "");
}

}  // namespace
}  // namespace vpp::test
