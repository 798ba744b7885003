#include "engine/tied_weights.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "schedule/lowering.hpp"
#include "stage/message.hpp"
#include "unit/engine/support.hpp"

namespace vpp::test {
namespace {

class TiedWeightsTest : public ::testing::Test {
  protected:
    TiedWeightsTest() : setup_(set_up_tiny("tied", folder_.path("."))) {}

    /// Four stages of about the same size.
    Program program_on(const std::vector<int>& rank_of_stage) {
        const std::vector<int> legal = setup_.legal_cuts();
        const size_t quarter = legal.size() / 4;
        return cut_program(setup_.prepared.program, {legal[quarter], legal[2 * quarter], legal[3 * quarter]},
                           plain_schedule(rank_of_stage, 3));
    }

    TemporaryFolder folder_;
    Rig setup_;
};

/// Whether a message is a copy on its way: nothing else goes forward over a tied edge.
bool is_copy(const Program& program, const Channel& channel) {
    return channel.direction == Direction::Forward &&
           program.training.split.edges[static_cast<size_t>(channel.edge)].is_tied();
}

class CountingTransport : public PassingTransport {
  public:
    CountingTransport(Transport& inner, const Program& program, std::atomic<int>& count)
        : PassingTransport(inner), program_(program), count_(count) {}
    void send(int peer, const Channel& channel, Buffer message) override {
        if (is_copy(program_, channel)) ++count_;
        PassingTransport::send(peer, channel, std::move(message));
    }

  private:
    const Program& program_;
    std::atomic<int>& count_;
};

TEST_F(TiedWeightsTest, stagesOfARankShareOneCopyAndTheOwnersRankNeedsNone) {
    const auto copies_on = [&](const std::vector<int>& rank_of_stage) {
        const Program program = program_on(rank_of_stage);
        std::atomic<int> count = 0;
        run_wrapped(setup_, program, 1,
                    [&](Transport& inner) { return std::make_unique<CountingTransport>(inner, program, count); });
        return count.load();
    };
    const Program program = program_on({0, 1, 2, 3});
    const auto& edges = program.training.split.edges;
    const auto tied = std::count_if(edges.begin(), edges.end(), [](const Edge& edge) { return edge.is_tied(); });
    EXPECT_GT(tied, 4);
    EXPECT_EQ(copies_on({0, 1, 2, 3}), tied);
    EXPECT_EQ(copies_on({0, 0, 0, 0}), 0);
    EXPECT_LT(copies_on({0, 1, 1, 1}), tied);
    EXPECT_GT(copies_on({0, 1, 1, 1}), 0);
}

// Sums once per step: another bracket, so close to one device but not equal, and the same from run to run.
TEST_F(TiedWeightsTest, sumsPerStepAreCloseAndRepeat) {
    Program program = program_on({0, 1, 2, 3});
    sum_ties_per_step(program.training.split);
    program.training.schedule = lower(plain_schedule({0, 1, 2, 3}, 3), schedule_edges(program.training.split));
    const RunRecord one = run_program(setup_, program, 2), other = run_program(setup_, program, 2);
    EXPECT_TRUE(compare_runs(one, other).is_equal);
    EXPECT_GT(compare_runs(run_reference(setup_, 2), one).num_different, 0);
    const auto gradients_of = [&](const Program& run, int64_t num_steps) {
        std::map<std::string, at::Tensor> found;
        std::mutex lock;
        with_engines(setup_, run, [&](Engine& engine) {
            for (int64_t step = 0; step < num_steps; ++step) engine.run_step(step);
            const std::lock_guard<std::mutex> guard(lock);
            for (const StateTensor& entry : engine.tensors()) {
                if (entry.name.starts_with("gradient")) found[entry.name] = entry.tensor.clone();
            }
        });
        return found;
    };
    for (const int64_t num_steps : {1, 3}) {  // what a step has summed is in no later one
        const auto expected = gradients_of(reference_program(setup_.prepared.program), num_steps);
        const auto got = gradients_of(program, num_steps);
        ASSERT_EQ(got.size(), expected.size());
        for (const auto& [name, gradient] : expected) {
            const double most = num_steps == 1 ? 1e-5 : 1e-3;
            EXPECT_LT(got.at(name).sub(gradient).abs().max().item<double>(), most) << name << ", " << num_steps;
        }
    }
}

/// Sends copies one update late: as they were when this object was made.
class StaleTransport : public PassingTransport {
  public:
    StaleTransport(Transport& inner, const Program& program) : PassingTransport(inner), program_(program) {}
    void send(int peer, const Channel& channel, Buffer message) override {
        if (is_copy(program_, channel)) std::swap(message, last_[{peer, channel.edge}]);
        PassingTransport::send(peer, channel, message ? std::move(message) : last_[{peer, channel.edge}]);
    }

  private:
    const Program& program_;
    std::map<std::pair<int, int>, Buffer> last_;
};

TEST_F(TiedWeightsTest, aCopyThatDoesNotFollowItsOwnerIsSeen) {
    const Program program = program_on({0, 1, 0, 1});
    const RunRecord reference = run_reference(setup_, 3);
    const VerifyResult good = compare_runs(reference, run_program(setup_, program, 3));
    EXPECT_TRUE(good.is_equal) << good.difference;
    const VerifyResult bad = compare_runs(reference, run_wrapped(setup_, program, 3, [&](Transport& inner) {
                                              return std::make_unique<StaleTransport>(inner, program);
                                          }));
    EXPECT_EQ(bad.different_step, 3) << "the copy of the first update is right, that of the second is the first";
}

}  // namespace
}  // namespace vpp::test
