#include "engine/executor.hpp"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <new>
#include <tuple>

#include "unit/engine/support.hpp"

namespace vpp::test {
namespace {

TEST(Describe, namesStageActionAndMicrobatch) {
    EXPECT_EQ(describe({ActionKind::F, 2, 3}), "stage 2, F of microbatch 3");
    EXPECT_EQ(describe({ActionKind::B, 0, 1}), "stage 0, B of microbatch 1");
    EXPECT_EQ(describe({ActionKind::I, 0, 1}), "stage 0, I of microbatch 1");
    EXPECT_EQ(describe({ActionKind::W, 0, 1}), "stage 0, W of microbatch 1");
    EXPECT_EQ(describe({ActionKind::SendF, 0, 1}), "stage 0, SEND_F of microbatch 1");
    EXPECT_EQ(describe({ActionKind::RecvF, 1, 1}), "stage 1, RECV_F of microbatch 1");
    EXPECT_EQ(describe({ActionKind::SendB, 1, 1}), "stage 1, SEND_B of microbatch 1");
    EXPECT_EQ(describe({ActionKind::RecvB, 0, 1}), "stage 0, RECV_B of microbatch 1");
    EXPECT_EQ(describe({ActionKind::ReduceGrad, 1, 0}), "stage 1, REDUCE_GRAD");
}

class Executors : public ::testing::Test {
  protected:
    Rig open(const std::string& model) { return set_up_tiny(model, folder_.path(".")); }
    TemporaryFolder folder_;
};

std::vector<int> middle_cuts(const Rig& setup, int num_stages) {
    const std::vector<int> legal = setup.legal_cuts();
    std::vector<int> cuts;
    for (int i = 1; i < num_stages; ++i)
        cuts.push_back(legal[legal.size() * static_cast<size_t>(i) / static_cast<size_t>(num_stages)]);
    return cuts;
}

/// All forwards, then the backwards of every stage from the last microbatch to the first.
Schedule descending_schedule(const std::vector<int>& rank_of_stage, int num_microbatches) {
    Schedule schedule = plain_schedule(rank_of_stage, num_microbatches);
    for (auto& actions : schedule.actions) {
        for (Action& action : actions) {
            if (action.kind == ActionKind::B) action.microbatch = num_microbatches - 1 - action.microbatch;
        }
    }
    return schedule;
}

TEST_F(Executors, outOfTurnBackwardHasTheBitsOfInTurn) {
    Rig setup = open("share");
    const RunRecord reference = run_reference(setup, 3);
    const std::vector<int> cuts = middle_cuts(setup, 3);
    for (const auto& ranks : {std::vector<int>{0, 1, 2}, {0, 0, 0}, {0, 1, 0}}) {
        const Program program = cut_program(setup.prepared.program, cuts, descending_schedule(ranks, 3));
        int64_t parked = 0;
        const auto look = [&](Engine& engine) {
            for (int64_t step = 0; step < 2; ++step) parked = engine.run_step(step).totals.parked_bytes;
        };
        with_engines(setup, program, look);
        EXPECT_GT(parked, 0) << "microbatches 2 and 1 wait for 0";
        const VerifyResult result = compare_runs(reference, run_program(setup, program, 3));
        EXPECT_TRUE(result.is_equal) << result.difference;
    }
    const Program in_turn = cut_program(setup.prepared.program, cuts, plain_schedule({0, 1, 2}, 3));
    with_engines(setup, in_turn, [](Engine& engine) { EXPECT_EQ(engine.run_step(0).totals.parked_bytes, 0); });
}

struct ChannelLess {
    bool operator()(const Channel& a, const Channel& b) const {
        return std::tie(a.direction, a.edge, a.microbatch) < std::tie(b.direction, b.edge, b.microbatch);
    }
};

/// A rank that has no memory for its second message.
class Starving final : public PassingTransport {
  public:
    using PassingTransport::PassingTransport;
    void send(int peer, const Channel& channel, Buffer message) override {
        if (channel.direction == Direction::Forward && channel.microbatch == 1) throw std::bad_alloc();
        PassingTransport::send(peer, channel, std::move(message));
    }
};

TEST_F(Executors, outOfMemoryNamesTheStageAndWhatTheRankHas) {
    Rig setup = open("share");
    const Program program = cut_program(setup.prepared.program, middle_cuts(setup, 2), plain_schedule({0, 1}, 3));
    try {
        run_wrapped(setup, program, 1, [](Transport& inner) { return std::make_unique<Starving>(inner); });
        FAIL() << "it went on";
    } catch (const Error& error) {
        const std::string text = error.what();
        EXPECT_EQ(error.kind(), ErrorKind::OutOfMemory);
        EXPECT_EQ(text.rfind("stage 0, SEND_F of microbatch 1: out of memory; this rank's tensors take ", 0), 0u)
            << text;
        EXPECT_NE(text.find(" of them since the step began; use more stages, smaller microbatches"), std::string::npos);
    }
}

/// A rank whose card has no memory for its second message.
class StarvingCard final : public PassingTransport {
  public:
    using PassingTransport::PassingTransport;
    void send(int peer, const Channel& channel, Buffer message) override {
        TORCH_CHECK_WITH(OutOfMemoryError, channel.microbatch != 1, "CUDA out of memory. Tried to allocate 2.00 GiB.");
        PassingTransport::send(peer, channel, std::move(message));
    }
};

TEST_F(Executors, aCardWithoutMemoryForAMessageNamesTheStageToo) {
    Rig setup = open("share");
    const Program program = cut_program(setup.prepared.program, middle_cuts(setup, 2), plain_schedule({0, 1}, 3));
    try {
        run_wrapped(setup, program, 1, [](Transport& inner) { return std::make_unique<StarvingCard>(inner); });
        FAIL() << "it went on";
    } catch (const Error& error) {
        const std::string text = error.what();
        EXPECT_EQ(error.kind(), ErrorKind::OutOfMemory);
        EXPECT_EQ(text.rfind("stage 0, SEND_F of microbatch 1: the device has no memory left: ", 0), 0u) << text;
        EXPECT_NE(text.find("Tried to allocate 2.00 GiB"), std::string::npos) << text;
        EXPECT_NE(text.find("this rank's tensors take "), std::string::npos) << text;
    }
}

/// A rank on which something asks for more memory than a card has, and does without, or fails with words of its own.
class Crowding final : public PassingTransport {
  public:
    explicit Crowding(Transport& inner, std::string words = "") : PassingTransport(inner), words_(std::move(words)) {}
    void send(int peer, const Channel& channel, Buffer message) override {
        try {
            at::empty({int64_t{1} << 50}, at::TensorOptions().dtype(at::kByte).device(test_device()));
        } catch (const c10::OutOfMemoryError&) {
        }
        const bool is_of_an_action = channel.direction == Direction::Forward;
        if (is_of_an_action && !words_.empty()) throw Error(ErrorKind::BadData, words_);
        PassingTransport::send(peer, channel, std::move(message));
    }

  private:
    std::string words_;
};

TEST_F(Executors, whatALibraryDoesWithoutMemoryEndsTheStep) {
    if (!test_device().is_cuda()) GTEST_SKIP() << "a request that fails here ends what asked";
    Rig setup = open("share");
    const Program program = cut_program(setup.prepared.program, middle_cuts(setup, 2), plain_schedule({0, 1}, 3));
    try {
        run_wrapped(setup, program, 1, [](Transport& inner) { return std::make_unique<Crowding>(inner); });
        FAIL() << "it went on";
    } catch (const Error& error) {
        const std::string text = error.what();
        EXPECT_EQ(error.kind(), ErrorKind::OutOfMemory);
        EXPECT_EQ(
            text.rfind("stage 0, SEND_F of microbatch 0: the device had no memory for 1 request, and a library did "
                       "without, by an algorithm that may have other bits; use more stages, smaller microbatches",
                       0),
            0u)
            << text;
        EXPECT_NE(text.find(" (this rank's tensors take "), std::string::npos) << text;
    }
}

TEST_F(Executors, whatALibrarySaysWithoutMemoryIsNotTakenForBadData) {
    if (!test_device().is_cuda()) GTEST_SKIP() << "a request that fails here ends what asked";
    Rig setup = open("share");
    const Program program = cut_program(setup.prepared.program, middle_cuts(setup, 2), plain_schedule({0, 1}, 3));
    const std::string words = "the model fails: GET was unable to find an engine to execute this computation";
    try {
        run_wrapped(setup, program, 1, [&](Transport& inner) { return std::make_unique<Crowding>(inner, words); });
        FAIL() << "it went on";
    } catch (const Error& error) {
        const std::string text = error.what();
        EXPECT_EQ(error.kind(), ErrorKind::OutOfMemory);
        const std::string begin = "stage 0, SEND_F of microbatch 0: " + words +
                                  "; before that the device had no memory for 1 request (this rank's tensors take ";
        EXPECT_EQ(text.rfind(begin, 0), 0u) << text;
    }
}

/// Notes where the parts of messages lie.
class PartsNoted : public PassingTransport {
  public:
    PartsNoted(Transport& inner, std::map<Channel, const void*, ChannelLess>& parts)
        : PassingTransport(inner), parts_(parts) {}
    void send(int peer, const Channel& channel, Buffer message) override {
        parts_[channel] = message.part().data.get();
        PassingTransport::send(peer, channel, std::move(message));
    }

  private:
    std::map<Channel, const void*, ChannelLess>& parts_;
};

// h goes to stage 1 on the other rank, and stage 2, which is on h's own rank, writes it: it has to go as a copy.
TEST_F(Executors, tensorsAreSentFromWhereTheyLieUnlessAnOpOfTheRankWritesThemLater) {
    if (!test_device().is_cpu()) GTEST_SKIP() << "tensors of this device go through memory of the CPU";
    Rig setup = open("outputs");
    const std::vector<GraphOp>& ops = setup.graph().ops;
    const auto op_of = [&](const std::string& kind) {
        const auto found = std::find_if(ops.begin(), ops.end(), [&](const GraphOp& op) { return op.kind == kind; });
        return static_cast<int>(found - ops.begin());
    };
    const Program program =
        cut_program(setup.prepared.program, {op_of("aten::tanh"), op_of("aten::mul_")}, plain_schedule({0, 1, 0}, 3));
    int num_shared = 0, num_copied = 0;
    InProcessWorld({.num_ranks = 2}).run([&](Transport& inner) {
        std::map<Channel, const void*, ChannelLess> parts;
        PartsNoted transport(inner, parts);
        Engine engine(setup.plan, program, setup.prepared.sources, setup.data, transport);
        std::map<Channel, const void*, ChannelLess> tensors;
        engine.executor().set_watch(
            {[&](const Edge& edge, int microbatch, Direction direction, const at::Tensor& tensor) {
                 tensors[{edge.id, microbatch, direction}] = tensor.const_data_ptr();
             },
             {}});
        engine.run_without_update(0);
        for (const auto& [channel, place] : parts) {
            if (channel.direction != Direction::Forward) continue;
            const Edge& edge = program.training.split.edges[static_cast<size_t>(channel.edge)];
            const bool is_written = edge.name == "h.1";
            EXPECT_EQ(place != tensors.at(channel), is_written) << edge.name;
            (is_written ? num_copied : num_shared) += 1;
        }
    });
    EXPECT_GT(num_shared, 0);
    EXPECT_GT(num_copied, 0);
    EXPECT_TRUE(compare_runs(run_reference(setup, 2), run_program(setup, program, 2)).is_equal);
}

// A device that takes memory may wait for all that it does: parts could hold it up for ever then.
TEST_F(Executors, partsThatMayHoldADeviceGoWhenNoMemoryIsTaken) {
    class HoldsDevices final : public PassingTransport {
      public:
        using PassingTransport::PassingTransport;
        bool may_hold_device() const override { return true; }
        bool goes_through_host() const override { return is_through_host_; }
        void set_through_host(bool is_so) override { is_through_host_ = is_so; }
        void send(int peer, const Channel& channel, Buffer message) override {
            if (channel.direction != Direction::Control) num_through_host_ += is_through_host_ ? 1 : 0;
            PassingTransport::send(peer, channel, std::move(message));
        }
        int take_num_through_host() { return std::exchange(num_through_host_, 0); }

      private:
        bool is_through_host_ = false;
        int num_through_host_ = 0;
    };
    if (!test_device().is_cpu()) GTEST_SKIP() << "this device takes memory when it likes";
    Rig setup = open("mlp");
    const Program program = cut_program(setup.prepared.program, middle_cuts(setup, 2), plain_schedule({0, 1}, 3));
    InProcessWorld({.num_ranks = 2}).run([&](Transport& inner) {
        HoldsDevices transport(inner);
        Engine engine(setup.plan, program, setup.prepared.sources, setup.data, transport);
        const auto num_through_host = [&] {
            engine.run_without_update(0);
            return transport.take_num_through_host();
        };
        EXPECT_EQ(num_through_host(), 3) << "the first run";
        EXPECT_EQ(num_through_host(), 0);
        transport.set_through_host(true);
        EXPECT_EQ(num_through_host(), 3) << "a rank's device took memory";
        EXPECT_EQ(num_through_host(), 0) << "and none took any since";
        engine.executor().expect_new_kernels();
        EXPECT_EQ(num_through_host(), 3) << "shapes that none has had";
        EXPECT_EQ(num_through_host(), 0);
    });
}

TEST_F(Executors, everySeedAndDelayGivesTheSameBits) {
    Rig setup = open("containers");
    const RunRecord reference = run_reference(setup, 2);
    const std::vector<int> cuts = middle_cuts(setup, 4);
    for (uint64_t seed = 0; seed < 12; ++seed) {
        InProcessOptions world;
        world.seed = seed;
        world.delay_probability = 0.6;
        const Schedule compute = random_schedule({0, 1, 1, 0}, 3, seed);
        const VerifyResult result =
            compare_runs(reference, run_program(setup, cut_program(setup.prepared.program, cuts, compute), 2, world));
        EXPECT_TRUE(result.is_equal) << "seed " << seed << ": " << result.difference;
    }
}

TEST_F(Executors, withoutOverlapTheBitsAreTheSame) {
    Rig setup = open("share");
    const RunRecord reference = run_reference(setup, 2);
    setup.plan.pipeline.overlap_p2p_comm = false;
    InProcessOptions world;
    world.overlap = false;
    const Program program = cut_program(setup.prepared.program, middle_cuts(setup, 3), plain_schedule({0, 1, 2}, 3));
    EXPECT_TRUE(compare_runs(reference, run_program(setup, program, 2, world)).is_equal);
}

TEST_F(Executors, aStageThatFailsEndsAllRanksAtOnceAndSaysWhere) {
    if (test_device().is_cuda()) GTEST_SKIP() << "a card fails later and for good (soft.jobs)";
    Rig setup = open("looks_up");
    const std::vector<int> legal = setup.legal_cuts();
    for (const auto& ranks : {std::vector<int>{0, 1, 2}, {0, 0, 1}}) {
        int embedding = 0;
        while (setup.graph().ops[static_cast<size_t>(embedding)].kind != "aten::embedding") ++embedding;
        const std::vector<int> cuts{legal.at(0), embedding};
        ASSERT_LT(cuts[0], cuts[1]);
        const Program program = cut_program(setup.prepared.program, cuts, plain_schedule(ranks, 3));
        const auto start = std::chrono::steady_clock::now();
        const std::string text = error_of(ErrorKind::BadData, [&] { run_program(setup, program, 1); });
        EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
        EXPECT_HAS(text, "stage 2, F of microbatch 0: the op aten::embedding in ");
        EXPECT_HAS(text, "out of range");
    }
}

TEST_F(Executors, aValueWhoseShapeFollowsTheDataIsOfAnySize) {
    Rig setup = open("selects");
    int select = 0;
    while (setup.graph().ops[static_cast<size_t>(select)].kind != "aten::masked_select") ++select;
    Program program = cut_program(setup.prepared.program, {select + 1}, plain_schedule({0, 1}, 3));
    for (Edge& edge : program.training.split.edges) edge.message_bytes = 1;
    EXPECT_TRUE(compare_runs(run_reference(setup, 2), run_program(setup, program, 2)).is_equal);
    program.training.graph.shapes_follow_data = false;
    const std::string text = error_of(ErrorKind::Bug, [&] { run_program(setup, program, 1); });
    EXPECT_HAS(text, "stage 0, SEND_F of microbatch 0");
    EXPECT_HAS(text, "of 1 that its shape allows");
}

TEST_F(Executors, gradientsOfTiedWeightsAreBoundedInAnyCase) {
    Rig setup = open("tied");
    Program program = cut_program(setup.prepared.program, middle_cuts(setup, 2), plain_schedule({0, 1}, 3));
    program.training.graph.shapes_follow_data = true;
    EXPECT_TRUE(compare_runs(run_reference(setup, 1), run_program(setup, program, 1)).is_equal);
    for (Edge& edge : program.training.split.edges) edge.message_bytes = 1;
    EXPECT_HAS(error_of(ErrorKind::Bug, [&] { run_program(setup, program, 1); }), "of 1 that its shape allows");
}

TEST_F(Executors, aDamagedMessageIsAnErrorWithItsPlace) {
    class Garbage : public PassingTransport {
      public:
        using PassingTransport::PassingTransport;
        Buffer receive(int peer, const Channel& channel) override {
            Buffer message = PassingTransport::receive(peer, channel);
            if (channel.direction == Direction::Forward) message.resize(message.bytes().size() - 1);
            return message;
        }
    };
    Rig setup = open("mlp");
    const Program program = cut_program(setup.prepared.program, middle_cuts(setup, 2), plain_schedule({0, 1}, 3));
    const auto wrap = [](Transport& inner) { return std::make_unique<Garbage>(inner); };
    const std::string text = error_of(ErrorKind::BadData, [&] { run_wrapped(setup, program, 1, wrap); });
    EXPECT_HAS(text, "stage 1, RECV_F of microbatch 0");
    EXPECT_HAS(text, "does not hold what it says");
}

TEST_F(Executors, spansSayWhenADeviceComputed) {
    Rig setup = open("mlp");
    const Program program = cut_program(setup.prepared.program, {}, plain_schedule({0}, 3));
    InProcessWorld({.num_ranks = 1}).run([&](Transport& transport) {
        Engine engine(setup.plan, program, setup.prepared.sources, setup.data, transport);
        engine.run_without_update(0);
        constexpr int64_t kTolerance = 500'000'000;
        int64_t last = 0;
        for (const ActionSpan& span : engine.executor().spans()) {
            if (test_device().is_cpu()) {
                EXPECT_EQ(span.device_end, 0);
                continue;
            }
            EXPECT_GT(span.device_begin, span.begin - kTolerance);
            EXPECT_LE(last, span.device_begin) << "one behind the other";
            EXPECT_LT(span.device_begin, span.device_end);
            EXPECT_LT(span.device_end, span.end + kTolerance);
            last = span.device_end;
        }
    });
}

TEST_F(Executors, actionsOfReplicasAreABugWithoutReplicas) {
    Rig setup = open("mlp");
    Program program = cut_program(setup.prepared.program, middle_cuts(setup, 2), plain_schedule({0, 0}, 3));
    program.training.schedule.actions[0].push_back({ActionKind::ReduceGrad, 0});
    EXPECT_HAS(error_of(ErrorKind::Bug, [&] { run_program(setup, program, 1); }), "of one replica are not reduced");
}

}  // namespace
}  // namespace vpp::test
