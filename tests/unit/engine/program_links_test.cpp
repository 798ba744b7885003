#include "engine/program_links.hpp"

#include <algorithm>

#include "schedule/message_order.hpp"
#include "support/recorded_links.hpp"
#include "unit/engine/support.hpp"

namespace vpp::test {
namespace {

using enum Direction;

TEST(LinksOf, areThoseOfEveryPipeline) {
    Program program;
    program.mesh = {2, 2, 1};
    program.training.schedule.actions = {{{ActionKind::F, 0, 0}, {ActionKind::SendF, 0, 0, 0, 1}},
                                         {{ActionKind::RecvF, 1, 0, 0, 0}, {ActionKind::SendB, 1, 0, 0, 0}}};
    const std::vector<Link> expected{{0, 2, Forward}, {2, 0, Backward}, {1, 3, Forward}, {3, 1, Backward}};
    EXPECT_EQ(links_of(program), expected);
    program.evaluation.emplace();
    program.evaluation->schedule.actions = {{}, {{ActionKind::SendF, 1, 0, 0, 0}}};
    EXPECT_EQ(connect_order(links_of(program)).size(), 6U) << "an evaluation has its own";
}

/// What engines see over links whose other ends are threads of this process.
class Linked final : public PassingTransport {
  public:
    Linked(std::unique_ptr<LinkMaker> maker, std::unique_ptr<LinkTransport> links)
        : PassingTransport(static_cast<Transport&>(*links)), maker_(std::move(maker)), links_(std::move(links)) {}

  private:
    std::unique_ptr<LinkMaker> maker_;
    std::unique_ptr<LinkTransport> links_;
};

RunRecord run_over_links(Rig& setup, Program program, RecordedLinks& recorded) {
    program.training.schedule = order_channels(program.training.schedule);
    return run_wrapped(setup, program, 2, [&](Transport& inner) -> std::unique_ptr<Transport> {
        auto maker = recorded.maker(inner.rank());
        auto links = std::make_unique<LinkTransport>(inner, links_of(program), *maker);
        return std::make_unique<Linked>(std::move(maker), std::move(links));
    });
}

class OverLinks : public ::testing::TestWithParam<const char*> {
  protected:
    void SetUp() override {
        // The stand-in moves memory that the CPU can read.
        if (!test_device().is_cpu()) GTEST_SKIP() << "links between threads carry memory of the CPU";
        setup_ = set_up_tiny(GetParam(), folder_.path("."));
        const std::vector<int> legal = setup_.legal_cuts();
        for (size_t i = 1; i < 4; ++i) cuts_.push_back(legal[legal.size() * i / 4]);
    }
    TemporaryFolder folder_;
    Rig setup_;
    std::vector<int> cuts_;
};

TEST_P(OverLinks, anyOrderHasTheBitsOfOneDevice) {
    const RunRecord reference = run_reference(setup_, 2);
    for (uint64_t seed = 0; seed < 6; ++seed) {
        const Schedule compute = random_schedule({0, 1, 1, 0}, 3, seed);
        RecordedLinks recorded({.waits_for_memory = true});
        const RunRecord run = run_over_links(setup_, cut_program(setup_.prepared.program, cuts_, compute), recorded);
        const VerifyResult result = compare_runs(reference, run);
        EXPECT_TRUE(result.is_equal) << "seed " << seed << ": " << result.difference;
        EXPECT_GT(recorded.num_done(), 2 * 3 * recorded.num_links()) << "values go over links";
    }
}

TEST_P(OverLinks, aTurnedBitIsSeen) {
    const RunRecord reference = run_reference(setup_, 2);
    RecordedLinks recorded({.waits_for_memory = true, .damaged = 6});
    const Schedule compute = plain_schedule({0, 1, 1, 0}, 3);
    const RunRecord run = run_over_links(setup_, cut_program(setup_.prepared.program, cuts_, compute), recorded);
    EXPECT_FALSE(compare_runs(reference, run).is_equal);
}

INSTANTIATE_TEST_SUITE_P(Models, OverLinks, ::testing::Values("share", "containers"));

}  // namespace
}  // namespace vpp::test
