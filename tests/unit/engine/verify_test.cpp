// Verify finds what it must find: every control here breaks one thing that a pipeline could do wrong.
#include "engine/verify.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "stage/message.hpp"
#include "unit/engine/support.hpp"

namespace vpp::test {
namespace {

class Verify : public ::testing::Test {
  protected:
    void open(const std::string& model) {
        setup_.emplace(set_up_tiny(model, folder_.path(".")));
        reference_ = run_reference(*setup_, 2);
    }
    /// Cut in the middle of the legal cuts into two or three stages.
    std::vector<int> middle(int num_stages) const {
        const std::vector<int> legal = setup_->legal_cuts();
        std::vector<int> cuts;
        for (int i = 1; i < num_stages; ++i)
            cuts.push_back(legal[legal.size() * static_cast<size_t>(i) / static_cast<size_t>(num_stages)]);
        return cuts;
    }
    Program program_on(const std::vector<int>& rank_of_stage) const {
        return cut_program(setup_->prepared.program, middle(static_cast<int>(rank_of_stage.size())),
                           plain_schedule(rank_of_stage, 3));
    }
    VerifyResult compare(const RunRecord& record) const { return compare_runs(reference_, record); }

    TemporaryFolder folder_;
    std::optional<Rig> setup_;
    RunRecord reference_;
};

TEST_F(Verify, findsNothingWhereNothingIsWrong) {
    for (const char* model : {"share", "bn_cnn", "dropout", "frozen"}) {
        open(model);
        const VerifyResult result = compare(run_program(*setup_, program_on({0, 1, 0}), 2));
        EXPECT_TRUE(result.is_equal) << model << ": " << result.difference;
        EXPECT_EQ(result.steps, 2);
        EXPECT_GT(result.num_compared, 30) << "losses, norm, gradients, parameters, optimizer state";
    }
}

TEST_F(Verify, isTheSameReferenceAsTheProductUses) {
    open("dropout");
    RunRecord record;
    with_reference(
        setup_->plan, setup_->prepared.program, setup_->data,
        [&](Engine& engine, Program&) { record = record_run(engine, 2); }, test_device());
    EXPECT_TRUE(compare(record).is_equal);
}

TEST_F(Verify, findsOneBitOfAWeight) {
    open("mlp");
    const auto flip = [](Engine& engine, int64_t step) {
        for (const StateTensor& entry : engine.tensors()) {
            if (step != 1 || entry.name != "parameter w2") continue;
            flip_bits(entry.tensor, 0, 1);
        }
    };
    const VerifyResult result = compare(run_program(*setup_, program_on({0, 1}), 2, {}, flip));
    EXPECT_FALSE(result.is_equal);
    EXPECT_EQ(result.different_step, 2);
    EXPECT_EQ(result.num_different, 1);
    EXPECT_HAS(result.difference, "parameter w2: reference ");
}

TEST_F(Verify, findsForwardsInAnotherOrder) {
    open("bn_cnn");
    Program program = program_on({0, 0});
    std::swap(program.training.schedule.actions[0][0], program.training.schedule.actions[0][1]);
    const VerifyResult result = compare(run_program(*setup_, program, 2));
    EXPECT_EQ(result.different_step, 1);
    EXPECT_HAS(result.difference, "buffer ") << "batch statistics advance in microbatch order";
}

/// Forward messages of microbatches 0 and 1 change places.
class SwappingFirstTwo : public PassingTransport {
  public:
    using PassingTransport::PassingTransport;
    void send(int peer, const Channel& channel, Buffer message) override {
        Channel other = channel;
        if (channel.direction == Direction::Forward && channel.microbatch < 2)
            other.microbatch = 1 - channel.microbatch;
        PassingTransport::send(peer, other, std::move(message));
    }
};

TEST_F(Verify, findsSwappedMicrobatches) {
    open("mlp");
    const VerifyResult result = compare(run_wrapped(
        *setup_, program_on({0, 1}), 2, [](Transport& inner) { return std::make_unique<SwappingFirstTwo>(inner); }));
    EXPECT_EQ(result.different_step, 1);
    EXPECT_HAS(result.difference, "loss of microbatch 0: reference ");
}

/// One bit of the last element of one message changes.
class FlippingMicrobatch : public PassingTransport {
  public:
    FlippingMicrobatch(Transport& inner, Direction direction) : PassingTransport(inner), direction_(direction) {}
    Buffer receive(int peer, const Channel& channel) override {
        Buffer message = PassingTransport::receive(peer, channel);
        if (channel.direction == direction_ && channel.microbatch == 1) {
            message.bytes()[message.bytes().size() - 2] ^=
                std::byte{0x40};  // in the mantissa: sums may absorb the last bit
        }
        return message;
    }

  private:
    Direction direction_;
};

TEST_F(Verify, findsADamagedMessage) {
    open("mlp");
    for (const Direction direction : {Direction::Forward, Direction::Backward}) {
        const VerifyResult result = compare(run_wrapped(*setup_, program_on({0, 1}), 1, [&](Transport& inner) {
            return std::make_unique<FlippingMicrobatch>(inner, direction);
        }));
        EXPECT_EQ(result.different_step, 1);
        EXPECT_HAS(result.difference, direction == Direction::Forward ? "loss of microbatch 1" : "gradient b1");
    }
}

/// The gradient of microbatch 2 arrives as "there is none".
class DroppingTransport : public PassingTransport {
  public:
    using PassingTransport::PassingTransport;
    void send(int peer, const Channel& channel, Buffer message) override {
        const bool drop = channel.direction == Direction::Backward && channel.microbatch == 2;
        PassingTransport::send(peer, channel, drop ? encode_tensor({}, 1 << 20, "none") : std::move(message));
    }
};

TEST_F(Verify, findsADroppedGradient) {
    open("mlp");
    const VerifyResult result = compare(run_wrapped(
        *setup_, program_on({0, 1}), 1, [](Transport& inner) { return std::make_unique<DroppingTransport>(inner); }));
    EXPECT_EQ(result.different_step, 1);
    EXPECT_FALSE(result.is_equal);
}

TEST_F(Verify, findsASkippedBackwardAndTheParkedGradientsBehindIt) {
    open("mlp");
    for (int microbatch : {1, 2}) {
        Program program = program_on({0, 0});
        std::erase(program.training.schedule.actions[0], Action{ActionKind::B, 0, microbatch});
        const VerifyResult result = compare(run_program(*setup_, program, 1));
        EXPECT_EQ(result.different_step, 1);
        EXPECT_HAS(result.difference, "gradient b1: ");
        EXPECT_GT(result.num_different, 4);
    }
}

// The sums of a shared value must go back through its users; sent straight to the producer they are
// summed in another order, which the bits tell wherever there are three.
TEST_F(Verify, findsGradientsThatGoStraightToTheProducer) {
    open("share");
    int found = 0;
    const std::vector<int> legal = setup_->legal_cuts();
    for (size_t i = 0; i + 8 < legal.size(); i += 3) {
        Program program = cut_program(setup_->prepared.program, {legal[i], legal[i + 8]}, plain_schedule({0, 0, 0}, 3));
        bool changed = false;
        for (Edge& edge : program.training.split.edges) {
            changed = changed || edge.gradient_to != edge.producer;
            edge.gradient_to = edge.producer;
            edge.segments.gradient_to = edge.segments.producer;
        }
        const VerifyResult result = compare(run_program(*setup_, program, 1));
        EXPECT_TRUE(changed || result.num_different == 0) << "cuts " << legal[i] << " and " << legal[i + 8];
        found += result.num_different > 0;
    }
    EXPECT_GT(found, 1);
}

// Numbers that could be taken for equal: another learning rate, one that does nothing in the first step.
TEST_F(Verify, findsAnotherDecay) {
    open("mlp");
    setup_->plan.optimizer.values.weight_decay = 0.2;
    const VerifyResult result = compare(run_program(*setup_, program_on({0, 1}), 1));
    EXPECT_HAS(result.difference, "parameter ");
}

TEST(ExactText, tellsAllBitsApart) {
    EXPECT_EQ(exact_text(0.5), "0.5 (0x1p-1)");
    EXPECT_NE(exact_text(0), exact_text(-0.0));
    EXPECT_NE(exact_text(1), exact_text(std::nextafter(1, 2)));
    EXPECT_EQ(exact_text(std::bit_cast<double>(0x7ff8000000000001)), "nan (0x7ff8000000000001)");
    EXPECT_EQ(exact_text(std::bit_cast<double>(0xfff8000000000000)), "nan (0xfff8000000000000)");
}

TEST(CompareRuns, namesTheFirstDifferenceNearestToItsCause) {
    RunRecord a, b;
    a.steps = {{{"loss of microbatch 0", "1"}, {"parameter a", "x"}},
               {{"loss of microbatch 0", "1"}, {"gradient z", "p"}, {"parameter a", "x"}, {"optimizer a.m", "y"}}};
    b = a;
    EXPECT_TRUE(compare_runs(a, b).is_equal);
    EXPECT_EQ(compare_runs(a, b).num_compared, 6);
    b.steps[1]["optimizer a.m"] = "?";
    b.steps[1]["parameter a"] = "?";
    b.steps[1].erase("gradient z");
    const VerifyResult result = compare_runs(a, b);
    EXPECT_FALSE(result.is_equal);
    EXPECT_EQ(result.different_step, 2);
    EXPECT_EQ(result.num_different, 3);
    EXPECT_EQ(result.difference, "gradient z: reference p, pipeline absent");
}

TEST(CompareRuns, saysWhereNoStepSentAnythingOverLinks) {
    RunRecord record;
    record.steps = {{{"loss of microbatch 0", "1"}}, {{"loss of microbatch 0", "1"}}};
    EXPECT_FALSE(compare_runs(record, record).is_through_host);
    record.through_host = 1;
    EXPECT_FALSE(compare_runs(record, record).is_through_host);
    record.through_host = 2;
    EXPECT_TRUE(compare_runs(record, record).is_through_host);
}

TEST(CompareRuns, isNotEqualWithoutStepsOrWithFewerOfThem) {
    RunRecord none, one;
    one.steps = {{{"loss of microbatch 0", "1"}}};
    EXPECT_FALSE(compare_runs(none, none).is_equal);
    EXPECT_FALSE(compare_runs(one, none).is_equal);
}

}  // namespace
}  // namespace vpp::test
