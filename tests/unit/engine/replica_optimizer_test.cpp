// That an update in shares has the bits of a whole one is seen in gradient_reduction_test; here what a rank holds,
// saves and takes.
#include "engine/replica_optimizer.hpp"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <mutex>

#include "engine/engine.hpp"
#include "unit/engine/support.hpp"

namespace vpp::test {
namespace {

/// What the ranks save after `steps`, by name; each name by one rank.
std::map<std::string, at::Tensor> saved_state(Rig& setup, int64_t steps, std::vector<int64_t>* bytes = nullptr) {
    std::map<std::string, at::Tensor> all;
    std::mutex mutex;
    with_engines(setup, setup.prepared.program, [&](Engine& engine) {
        for (int64_t step = 0; step < steps; ++step) engine.run_step(step);
        int64_t own_bytes = 0;
        for (const StateTensor& entry : engine.state()) {
            const std::lock_guard lock(mutex);
            EXPECT_TRUE(all.emplace(entry.name, entry.tensor.clone()).second) << entry.name << " is saved twice";
            own_bytes += static_cast<int64_t>(entry.tensor.nbytes());
        }
        const std::lock_guard lock(mutex);
        if (bytes) bytes->push_back(own_bytes);
    });
    return all;
}

std::vector<StateTensor> as_list(const std::map<std::string, at::Tensor>& state) {
    std::vector<StateTensor> list;
    for (const auto& [name, tensor] : state) list.push_back({name, tensor});
    return list;
}

TEST(ReplicaOptimizer, savesTheSameStateWithSharesAndWithout) {
    const TemporaryFolder folder;
    for (const char* model : {"mlp", "bn_cnn", "tied"}) {
        Rig whole = set_up_tiny(model, folder.path("."), with_replicas(3));
        Rig shared = set_up_tiny(model, folder.path("."), with_replicas(3, /*zero1=*/true));
        const auto expected = saved_state(whole, 2), found = saved_state(shared, 2);
        EXPECT_EQ(digests(as_list(found)), digests(as_list(expected))) << model;
        EXPECT_GT(found.size(), 8U);
        EXPECT_TRUE(saved_state(shared, 0).size() < found.size()) << "before the first update there is no state";
    }
}

TEST(ReplicaOptimizer, replicasSaveAboutTheSameAmount) {
    const TemporaryFolder folder;
    Rig setup = set_up_tiny("unet", folder.path("."), with_replicas(2));
    std::vector<int64_t> bytes;
    saved_state(setup, 1, &bytes);
    ASSERT_EQ(bytes.size(), 2U);
    EXPECT_GT(*std::min_element(bytes.begin(), bytes.end()), 0);
}

TEST(ReplicaOptimizer, goesOnFromAnyOtherLayoutsState) {
    const TemporaryFolder folder;
    Rig one = set_up_tiny("mlp", folder.path("."));
    const auto state = saved_state(one, 2);
    for (bool zero1 : {false, true}) {
        for (int num_replicas : {2, 3}) {
            Rig setup = set_up_tiny("mlp", folder.path("."), with_replicas(num_replicas, zero1));
            std::map<std::string, at::Tensor> again;
            std::mutex mutex;
            with_engines(setup, setup.prepared.program, [&](Engine& engine) {
                engine.load_state([&](const std::string& name, at::ScalarType, const std::vector<int64_t>&) {
                    const auto found = state.find(name);
                    return found == state.end() ? std::nullopt : std::optional(found->second);
                });
                for (const StateTensor& entry : engine.state()) {
                    const std::lock_guard lock(mutex);
                    again.emplace(entry.name, entry.tensor.clone());
                }
            });
            EXPECT_EQ(digests(as_list(again)), digests(as_list(state))) << num_replicas << " replicas, " << zero1;
        }
    }
}

/// A weight that lies in memory as its transposition does.
class TransposedWeight : public Source {
  public:
    std::unique_ptr<Executable> executable(const OpSelection&, at::Device) override { return nullptr; }
    at::Tensor weight(int) override { return at::zeros({60, 100}).t(); }
};

// Checkpoints have rows one behind the other; shares are cut in the order of the memory.
TEST(ReplicaOptimizer, takesAStateByRowsWhateverTheMemoryOfItsParameter) {
    Graph graph;
    graph.parameters.push_back({"w", {}, DType::F32, {100, 60}, false, true, false, {}});
    Split split;
    split.stages.resize(1);
    split.stages[0].parameters = {0};
    Plan plan;
    plan.mesh.zero1 = true;
    plan.optimizer.kind = "adamw";
    const std::vector<ReplicaShares> shares = find_shares(graph, split, {0}, 2, 1 << 20);
    const std::vector<int> trained{0};
    const at::Tensor numbers = at::arange(6000, at::kFloat).view({100, 60});
    const std::map<std::string, at::Tensor> saved{
        {"w.step", at::full({}, 3.0F)}, {"w.exp_avg", numbers}, {"w.exp_avg_sq", numbers.add(0.5)}};
    InProcessWorld({.num_ranks = 2}).run([&](Transport& transport) {
        TransposedWeight source;
        Weights weights;
        weights.load(source, split, {0});
        ASSERT_FALSE(weights.at(0).is_contiguous());
        ReplicaOptimizer optimizer(plan, graph, shares, weights, trained, transport, {0, 1});
        optimizer.load_state([&](const std::string& name, at::ScalarType, const std::vector<int64_t>& shape) {
            EXPECT_EQ(saved.at(name).sizes().vec(), shape);
            return std::optional(saved.at(name));
        });
        const std::vector<StateTensor> state = optimizer.state();
        EXPECT_EQ(state.size(), transport.rank() == 0 ? 3U : 0U);
        for (const StateTensor& entry : state) EXPECT_TRUE(at::equal(entry.tensor, saved.at(entry.name))) << entry.name;
    });
}

TEST(ReplicaOptimizer, holdsItsShareOfTheState) {
    const TemporaryFolder folder;
    const auto held = [&](bool zero1) {
        Rig setup = set_up_tiny("mlp", folder.path("."), with_replicas(2, zero1));
        const Program& program = setup.prepared.program;
        std::vector<int64_t> bytes(2);
        InProcessWorld({.num_ranks = 2}).run([&](Transport& transport) {
            Weights weights;
            weights.load(*setup.prepared.sources.training, program.training.split, {0});
            std::vector<int> trained;
            for (int parameter : weights.owned()) {
                const auto& entry = setup.graph().parameters[static_cast<size_t>(parameter)];
                if (entry.requires_grad) trained.push_back(parameter);
            }
            const auto shares = find_shares(setup.graph(), program.training.split, {0}, 2, 1 << 20);
            const ReplicaOptimizer optimizer(setup.plan, setup.graph(), shares, weights, trained, transport, {0, 1});
            bytes[static_cast<size_t>(transport.rank())] = optimizer.full_state_bytes();
        });
        return bytes;
    };
    const std::vector<int64_t> whole = held(false), parts = held(true);
    EXPECT_EQ(whole[1], 0) << "replica 0 stands for both";
    EXPECT_NEAR(static_cast<double>(parts[0]), static_cast<double>(whole[0]) / 2, 1100);
    EXPECT_NEAR(static_cast<double>(parts[0] + parts[1]), static_cast<double>(whole[0]), 100);
}

}  // namespace
}  // namespace vpp::test
