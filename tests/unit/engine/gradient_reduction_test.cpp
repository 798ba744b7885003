// Replicas against one device that adds in the order of the replicas; every control breaks one thing between them.
#include "engine/gradient_reduction.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>

#include <numeric>

#include "base/random.hpp"
#include "engine/verify.hpp"
#include "support/linked_runs.hpp"
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
    std::unique_ptr<Executable> executable(const OpSelection&, at::Device) override { return nullptr; }
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
        // In the next step all have one of w.
        w.mutable_grad() = at::full({200}, 10.0F + static_cast<float>(transport.rank()));
        reduction.start(0);
        reduction.finish();
        EXPECT_TRUE(at::equal(w.grad(), at::full({200}, 33.0F)));
        EXPECT_FALSE(v.grad().defined());
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

/// Gradients of some stages and replicas, drawn; what the replicas reduce them to.
class RandomReduction {
  public:
    explicit RandomReduction(uint64_t seed) : key_(mix64(seed)), num_replicas_(2 + draw(5)) {
        const int num_stages = 1 + draw(3);
        split_.stages.resize(static_cast<size_t>(num_stages));
        std::vector<int> stages;
        for (int stage = 0; stage < num_stages; ++stage) {
            stages.push_back(stage);
            for (int left = 1 + draw(3); left > 0; --left) add_parameter(stage);
        }
        shares_ = find_shares(graph_, split_, stages, num_replicas_, 64 << draw(6));
        for (int left = num_stages; left > 0; --left) {
            order_.insert(order_.begin() + draw(static_cast<int>(order_.size()) + 1), left - 1);
        }
    }

    int num_replicas() const { return num_replicas_; }
    std::vector<int> replicas() const {
        std::vector<int> ranks(static_cast<size_t>(num_replicas_));
        std::iota(ranks.begin(), ranks.end(), 0);
        return ranks;
    }

    /// One replica's part.
    void run(Transport& transport) const {
        DrawnSource source(graph_);
        Weights weights;
        std::vector<int> stages(split_.stages.size());
        std::iota(stages.begin(), stages.end(), 0);
        weights.load(source, split_, stages);
        GradientReduction reduction(graph_, shares_, weights, transport, replicas());
        uint64_t key = mix64(key_ + static_cast<uint64_t>(transport.rank()));
        for (int stage : order_) {
            for (int parameter : split_.stages[static_cast<size_t>(stage)].parameters) {
                at::Tensor(weights.at(parameter)).mutable_grad() = gradient(parameter, transport.rank());
            }
            reduction.start(stage);
            for (key = mix64(key); key % 2 == 0; key = mix64(key)) reduction.advance();
        }
        reduction.finish();
        transport.finish_sends();
        for (int parameter = 0; parameter < static_cast<int>(graph_.parameters.size()); ++parameter) {
            const at::Tensor sum = expected_sum(parameter), own = weights.at(parameter).grad();
            ASSERT_EQ(sum.defined(), own.defined());
            ASSERT_TRUE(!sum.defined() || at::equal(sum, own)) << "parameter " << parameter;
        }
    }

  private:
    class DrawnSource : public ZeroWeights {
      public:
        explicit DrawnSource(const Graph& graph) : graph_(graph) {}
        at::Tensor weight(int parameter) override {
            return at::zeros(graph_.parameters[static_cast<size_t>(parameter)].shape);
        }

      private:
        const Graph& graph_;
    };

    int draw(int bound) { return static_cast<int>((key_ = mix64(key_)) % static_cast<uint64_t>(bound)); }

    void add_parameter(int stage) {
        split_.stages[static_cast<size_t>(stage)].parameters.push_back(static_cast<int>(graph_.parameters.size()));
        graph_.parameters.push_back({"w", {}, DType::F32, {1 + draw(400)}, false, true, false, {}});
    }

    /// One of eight is missing.
    at::Tensor gradient(int parameter, int replica) const {
        const uint64_t key = combine_key(static_cast<uint64_t>(parameter), static_cast<uint64_t>(replica));
        if (mix64(key ^ key_) % 8 == 0) return {};
        const std::vector<int64_t>& shape = graph_.parameters[static_cast<size_t>(parameter)].shape;
        return at::randn(shape, at::detail::createCPUGenerator(key));
    }

    at::Tensor expected_sum(int parameter) const {
        at::Tensor sum;
        for (int replica : replicas()) {
            const at::Tensor one = gradient(parameter, replica);
            if (one.defined()) sum = sum.defined() ? sum.add(one) : one;
        }
        return sum;
    }

    uint64_t key_;
    int num_replicas_;
    Graph graph_;
    Split split_;
    std::vector<ReplicaShares> shares_;
    std::vector<int> order_;  ///< in which gradients of stages are whole
};

/// All contents over the link of the first.
class OneLink final : public PassingTransport {
  public:
    using PassingTransport::PassingTransport;
    void exchange(Exchange messages) override {
        messages.channel = on_one(messages.channel);
        PassingTransport::exchange(std::move(messages));
    }
    Buffer receive(int peer, const Channel& channel) override {
        return PassingTransport::receive(peer, on_one(channel));
    }
    bool has_arrived(int peer, const Channel& channel) override {
        return PassingTransport::has_arrived(peer, on_one(channel));
    }

  private:
    static Channel on_one(const Channel& channel) {
        if (channel.direction != Direction::Replicas) return channel;
        return {2 * channel.edge + channel.microbatch, 0, Direction::Replicas};
    }
};

/// What a reduction over links ends with.
std::string reduce_over_links(uint64_t seed, bool on_one_link = false) {
    const RandomReduction reduction(seed);
    Program program;
    program.mesh = {1, reduction.num_replicas(), 1};
    program.training.schedule.actions.resize(1);
    RecordedLinks recorded({.waits_for_memory = true});
    try {
        const InProcessOptions world{.num_ranks = reduction.num_replicas(), .seed = seed, .delay_probability = 0.3};
        InProcessWorld(world).run([&](Transport& bytes) {
            const auto maker = recorded.maker(bytes.rank());
            LinkTransport links(bytes, links_of(program), *maker);
            OneLink one(links);
            reduction.run(on_one_link ? static_cast<Transport&>(one) : links);
        });
    } catch (const Error& error) {
        return error.what();
    }
    EXPECT_GT(recorded.num_done(), recorded.num_links()) << "gradients go over links";
    return "";
}

void reduce_random_layouts(uint64_t first, uint64_t count) {
    for (uint64_t seed = first; seed < first + count; ++seed) ASSERT_EQ(reduce_over_links(seed), "") << seed;
}

TEST(GradientReduction, AnyLayoutEndsWithTheSumOverLinks) {
    reduce_random_layouts(0, 200);
}

TEST(GradientReductionFull, AnyLayoutEndsWithTheSumOverLinks) {
    reduce_random_layouts(10000, 10000);
}

TEST(GradientReduction, ContentsThatShareALinkCross) {
    int num_crossing = 0;
    for (uint64_t seed = 0; seed < 60; ++seed) num_crossing += reduce_over_links(seed, true).empty() ? 0 : 1;
    EXPECT_GT(num_crossing, 10) << "the stand-in sees nothing";
}

}  // namespace
}  // namespace vpp::test
