// Replicas against one device that adds in the order of the replicas; every control breaks one thing between them.
#include "engine/gradient_reduction.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>

#include "engine/verify.hpp"
#include "unit/engine/support.hpp"

namespace vpp::test {
namespace {

constexpr int64_t kReducedSteps = 2;

class Replicas : public ::testing::Test {
  protected:
    void open(const std::string& model, int num_replicas, bool zero1 = false) {
        setup_.emplace(set_up_tiny(model, folder_.path("."), with_replicas(num_replicas, zero1)));
        with_reference(
            setup_->plan, setup_->prepared.program, setup_->data,
            [&](Engine& engine, Program&) { reference_ = record_run(engine, kReducedSteps); }, test_device());
    }
    Program program_on(const std::vector<int>& rank_of_stage, uint64_t seed) const {
        const std::vector<int> legal = setup_->legal_cuts();
        std::vector<int> cuts;
        for (size_t i = 1; i < rank_of_stage.size(); ++i) {
            cuts.push_back(legal[legal.size() * i / rank_of_stage.size()]);
        }
        return cut_program(setup_->prepared.program, cuts, random_schedule(rank_of_stage, 3, seed));
    }
    VerifyResult compare(const RunRecord& record) const { return compare_runs(reference_, record); }

    TemporaryFolder folder_;
    std::optional<Rig> setup_;
    RunRecord reference_;
};

TEST_F(Replicas, haveTheBitsOfOneDeviceThatAddsInTheirOrder) {
    for (const char* model : {"mlp", "share", "bn_cnn", "dropout", "frozen", "tied"}) {
        for (int num_replicas : {2, 3}) {
            open(model, num_replicas);
            for (const std::vector<int>& ranks : {std::vector<int>{0}, {0, 1}, {0, 1, 1, 0}}) {
                const InProcessOptions delays{.seed = 7, .delay_probability = 0.3};
                const VerifyResult result = compare(run_program(*setup_, program_on(ranks, 5), kReducedSteps, delays));
                EXPECT_TRUE(result.is_equal)
                    << model << ", DP " << num_replicas << ", " << ranks.size() << " stages: " << result.difference;
                EXPECT_EQ(result.by_kind.at("loss"), 3 * num_replicas * kReducedSteps);
            }
        }
    }
}

TEST_F(Replicas, haveTheSameBitsWithSharedOptimizerState) {
    for (const char* model : {"mlp", "bn_cnn", "tied"}) {
        open(model, 3, /*zero1=*/true);
        for (const std::vector<int>& ranks : {std::vector<int>{0}, {0, 1, 1, 0}}) {
            const VerifyResult result = compare(run_program(*setup_, program_on(ranks, 3), kReducedSteps));
            EXPECT_TRUE(result.is_equal) << model << ": " << result.difference;
            EXPECT_GT(result.by_kind.at("optimizer"), result.by_kind.at("gradient"));
        }
    }
}

TEST_F(Replicas, waitForNothingWhereSendsWait) {
    open("mlp", 2);
    const InProcessOptions blocking{.overlap = false};
    EXPECT_TRUE(compare(run_program(*setup_, program_on({0}, 1), kReducedSteps, blocking)).is_equal);
}

/// Changes messages between replicas.
class DamagingTransport : public PassingTransport {
  public:
    enum class Damage { Swap, Drop, Flip };
    DamagingTransport(Transport& inner, ReplicaContent content, Damage damage)
        : PassingTransport(inner), content_(static_cast<int>(content)), damage_(damage) {}
    Buffer receive(int peer, const Channel& channel) override {
        Buffer message = PassingTransport::receive(peer, channel);
        if (channel.direction != Direction::Replicas || channel.microbatch != content_) return message;
        if (damage_ == Damage::Drop) message.bytes()[0] = std::byte{0};
        if (damage_ == Damage::Flip && (rank() == 1 || content_ == kState)) message.bytes()[66] ^= std::byte{0x40};
        if (damage_ == Damage::Swap) std::swap_ranges(data(message, 64), data(message, 80), data(message, 80));
        return message;
    }

  private:
    // Parts of a tensor go to the replica that saves it, whichever that is.
    static constexpr int kState = static_cast<int>(ReplicaContent::State);
    static std::byte* data(Buffer& message, size_t offset) { return message.bytes().data() + offset; }
    int content_;
    Damage damage_;
};

TEST_F(Replicas, areSeenToBeDamaged) {
    using Damage = DamagingTransport::Damage;
    open("mlp", 2, /*zero1=*/true);
    const auto run = [&](ReplicaContent content, Damage damage) {
        return compare(run_wrapped(*setup_, program_on({0, 1}, 1), 1, [&](Transport& inner) {
            return std::make_unique<DamagingTransport>(inner, content, damage);
        }));
    };
    for (Damage damage : {Damage::Swap, Damage::Drop, Damage::Flip}) {
        const VerifyResult result = run(ReplicaContent::Gradients, damage);
        EXPECT_EQ(result.different_step, 1);
        EXPECT_HAS(result.difference, "gradient ");
    }
    EXPECT_HAS(run(ReplicaContent::Sums, Damage::Flip).difference, "and of another replica")
        << "one replica alone has it wrong";
    EXPECT_HAS(run(ReplicaContent::Parameters, Damage::Flip).difference, "parameter ");
    open("unet", 2, /*zero1=*/true);  // large enough for a parameter of which both have a part
    EXPECT_HAS(run(ReplicaContent::State, Damage::Flip).difference, "optimizer ");
}

TEST_F(Replicas, ofAnotherSeedAreSeen) {
    open("dropout", 2);
    const Program program = program_on({0}, 1);
    RunRecord record;
    InProcessWorld({.num_ranks = 2}).run([&](Transport& transport) {
        Plan plan = setup_->plan;
        if (transport.rank() == 1) plan.train.seed += 1;
        Engine engine(plan, program, setup_->prepared.sources, setup_->data, transport);
        RunRecord own = record_run(engine, 1);
        if (transport.rank() == 0) record = std::move(own);
    });
    EXPECT_FALSE(compare(record).is_equal);
}

/// Weights without a model file.
class ZeroWeights : public Source {
  public:
    std::unique_ptr<Executable> executable(OpRange, const std::vector<int>&, const std::vector<int>&,
                                           const std::vector<int>&) override {
        return nullptr;
    }
    at::Tensor weight(int) override { return at::zeros({200}); }
};

TEST(GradientReduction, replicasThatLackAGradientAddNothing) {
    Graph graph;
    graph.parameters.push_back({"w", {}, DType::F32, {200}, false, true, false, {}});
    graph.parameters.push_back({"v", {}, DType::F32, {200}, false, true, false, {}});
    Split split;
    split.stages.resize(1);
    split.stages[0].parameters = {0, 1};
    const std::vector<ReplicaShares> shares = find_shares(graph, split, {0}, 3, 256);
    InProcessWorld({.num_ranks = 3}).run([&](Transport& transport) {
        ZeroWeights source;
        Weights weights;
        weights.load(source, split, {0});
        const at::Tensor w = weights.at(0), v = weights.at(1);
        // Replica 0 has none of w; nobody has one of v.
        if (transport.rank() > 0) w.mutable_grad() = at::full({200}, static_cast<float>(transport.rank()));
        GradientReduction reduction(graph, shares, weights, transport, {0, 1, 2});
        reduction.start(0);
        reduction.finish();
        ASSERT_TRUE(w.grad().defined());
        EXPECT_TRUE(at::equal(w.grad(), at::full({200}, 3.0F)));
        EXPECT_FALSE(v.grad().defined()) << "a gradient that does not exist stays undefined";
        EXPECT_GE(reduction.take_exposed_seconds(), 0);
    });
}

// Three numbers tell the order in which they are added.
TEST(GradientReduction, addsInTheOrderOfTheReplicas) {
    Graph graph;
    graph.parameters.push_back({"w", {}, DType::F32, {200}, false, true, false, {}});
    Split split;
    split.stages.resize(1);
    split.stages[0].parameters = {0};
    const std::vector<ReplicaShares> shares = find_shares(graph, split, {0}, 3, 256);
    std::vector<at::Tensor> gradients;
    for (int i = 0; i < 3; ++i) gradients.push_back(at::randn({200}, at::detail::createCPUGenerator(40 + i)));
    const at::Tensor expected = gradients[0].add(gradients[1]).add(gradients[2]);
    for (const std::vector<int>& order : {std::vector<int>{0, 1, 2}, {2, 1, 0}}) {
        InProcessWorld({.num_ranks = 3}).run([&](Transport& transport) {
            ZeroWeights source;
            Weights weights;
            weights.load(source, split, {0});
            at::Tensor(weights.at(0)).mutable_grad() = gradients[static_cast<size_t>(transport.rank())].clone();
            GradientReduction reduction(graph, shares, weights, transport, order);
            reduction.start(0);
            reduction.finish();
            EXPECT_EQ(at::equal(weights.at(0).grad(), expected), order[0] == 0);
        });
    }
}

}  // namespace
}  // namespace vpp::test
