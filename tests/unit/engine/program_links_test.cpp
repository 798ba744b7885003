#include "engine/program_links.hpp"

#include <algorithm>

#include "comm/link_room.hpp"
#include "engine/replica_pieces.hpp"
#include "engine/verify.hpp"
#include "schedule/edges.hpp"
#include "schedule/generators.hpp"
#include "schedule/lowering.hpp"
#include "support/linked_runs.hpp"
#include "unit/engine/support.hpp"

namespace vpp::test {
namespace {

void add_edge(Phase& phase, int64_t message_bytes) {
    phase.split.edges.emplace_back().message_bytes = message_bytes;
}

TEST(LinksOf, areThoseOfEveryPipeline) {
    Program program;
    program.mesh = {2, 1, 2};  // two pipelines without replicas
    program.training.schedule.actions = {{{ActionKind::F, 0, 0}, {ActionKind::SendF, 0, 0, 0, 1}},
                                         {{ActionKind::RecvF, 1, 0, 0, 0}, {ActionKind::SendB, 1, 0, 0, 0}}};
    add_edge(program.training, 9);
    const std::vector<Link> expected{{{0, 2}}, {{1, 3}}, {{2, 0}}, {{3, 1}}};
    EXPECT_EQ(links_of(program), expected);
    program.evaluation.emplace();
    program.evaluation->schedule.actions = {{}, {{ActionKind::SendF, 1, 0, 0, 0}}};
    add_edge(*program.evaluation, 1);
    const std::vector<Link> by_bytes{{{2, 0}}, {{3, 1}}, {{0, 2}}, {{1, 3}}};
    EXPECT_EQ(links_of(program), by_bytes) << "values go the way of gradients, and most bytes with them";
}

TEST(LinksOf, WhereShapesFollowTheDataAreThoseOfReplicas) {
    Program program;
    program.mesh = {2, 2, 1};
    program.training.schedule.actions = {{{ActionKind::SendF, 0, 0, 0, 1}}, {}};
    add_edge(program.training, 9);
    program.evaluation = program.training;
    const auto is_of_replicas = [](const Link& link) { return link.is_of_replicas; };
    EXPECT_FALSE(std::ranges::all_of(links_of(program), is_of_replicas));
    EXPECT_EQ(no_links_text(program), "");
    for (Graph* graph : {&program.training.graph, &program.evaluation->graph}) {
        graph->shapes_follow_data = true;
        EXPECT_TRUE(std::ranges::all_of(links_of(program), is_of_replicas));
        EXPECT_EQ(links_of(program).size(), 2U * 2);
        EXPECT_NE(no_links_text(program).find("the shapes of this model may follow the data"), std::string::npos);
        program.mesh.pp = 1;
        EXPECT_EQ(no_links_text(program), "") << "one stage sends nothing";
        program.mesh.pp = 2;
        graph->shapes_follow_data = false;
    }
}

// The first and the last stage are the first rank's, so values and gradients go both ways between each two neighbours.
TEST(LinksOf, ReplicasOfSchedulesInTheShapeOfAVHaveRoom) {
    Program program;
    program.mesh = {4, 2, 1};
    program.training.schedule = lower(make_schedule("ZERO_BUBBLE_V", 4, 2, 8), chain_edges(8));
    for (size_t i = 0; i < chain_edges(8).size(); ++i) add_edge(program.training, 1);
    const std::vector<Link> links = links_of(program);
    EXPECT_EQ(most_links_of_a_rank(links), 4U + 2U) << "two neighbours, and what replicas exchange";
    EXPECT_EQ(links_with_room(links), links);
}

TEST(LinksOf, ReplicasHaveTwoHoweverManyThereAre) {
    Program program;
    program.mesh = {1, 3, 1};
    program.training.schedule.actions.resize(2);
    const std::vector<int> all{0, 1, 2};
    const std::vector<Link> expected{{all, true, 0}, {all, true, 1}};
    EXPECT_EQ(links_of(program), expected);
    using enum ReplicaContent;
    const auto number_of = [&](ReplicaContent content) { return link_of(all, replica_channel(0, content)).number; };
    EXPECT_EQ(number_of(Gradients), number_of(Buffers)) << "which go when gradients are done";
    EXPECT_EQ(number_of(Sums), number_of(Parameters)) << "which go when sums are done";
    EXPECT_NE(number_of(Gradients), number_of(Sums)) << "sums are made while gradients come";
    program.mesh = {2, 64, 1};
    EXPECT_EQ(links_of(program).size(), 2U * 2) << "the replicas of each stage by themselves";
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
    RunRecord run_reference_of_replicas() {
        RunRecord reference;
        with_reference(
            setup_.plan, setup_.prepared.program, setup_.data,
            [&](Engine& engine, Program&) { reference = record_run(engine, kStepsOverLinks); }, test_device());
        return reference;
    }

    TemporaryFolder folder_;
    Rig setup_;
    std::vector<int> cuts_;
};

TEST_P(OverLinks, anyOrderHasTheBitsOfOneDevice) {
    const RunRecord reference = run_reference(setup_, kStepsOverLinks);
    for (uint64_t seed = 0; seed < 6; ++seed) {
        const Schedule compute = random_schedule({0, 1, 1, 0}, 3, seed);
        RecordedLinks recorded({.waits_for_memory = true});
        const RunRecord run = run_over_links(setup_, cut_program(setup_.prepared.program, cuts_, compute), recorded);
        const VerifyResult result = compare_runs(reference, run);
        EXPECT_TRUE(result.is_equal) << "seed " << seed << ": " << result.difference;
        EXPECT_GT(recorded.num_done(), 2 * 3 * recorded.num_links()) << "values go over links";
    }
}

TEST_P(OverLinks, whatFindsNoRoomForALinkHasTheBitsOfOneDevice) {
    const RunRecord reference = run_reference(setup_, kStepsOverLinks);
    const Program program = cut_program(setup_.prepared.program, cuts_, plain_schedule({0, 1, 2, 0}, 3));
    const size_t num_links = links_of(program).size();
    EXPECT_GE(num_links, 4U);
    int64_t most_done = -1;
    for (size_t num_missing : {num_links, num_links / 2, size_t{0}}) {
        RecordedLinks recorded({.waits_for_memory = true});
        const RunRecord run = run_over_links(setup_, program, recorded, kStepsOverLinks, num_missing);
        const VerifyResult result = compare_runs(reference, run);
        EXPECT_TRUE(result.is_equal) << num_missing << " missing: " << result.difference;
        EXPECT_GT(recorded.num_done(), most_done) << "more goes over more links";
        most_done = recorded.num_done();
    }
}

TEST_P(OverLinks, nothingIsUnderWayWhereOpsRunForTheFirstTime) {
    RecordedLinks recorded({.waits_for_memory = true});
    run_over_links(setup_, cut_program(setup_.prepared.program, cuts_, plain_schedule({0, 1, 1, 0}, 3)), recorded, 1);
    EXPECT_EQ(recorded.num_done(), recorded.num_links()) << "the connecting";
}

TEST_P(OverLinks, replicasHaveTheBitsOfOneDevice) {
    for (int num_replicas : {2, 3}) {
        for (bool zero1 : {false, true}) {
            setup_ = set_up_tiny(GetParam(), folder_.path("."), with_replicas(num_replicas, zero1));
            const RunRecord reference = run_reference_of_replicas();
            for (uint64_t seed = 0; seed < 2; ++seed) {
                const Schedule compute = random_schedule({0, 1, 1, 0}, 3, seed);
                RecordedLinks recorded({.waits_for_memory = true});
                const Program program = cut_program(setup_.prepared.program, cuts_, compute);
                const VerifyResult result = compare_runs(reference, run_over_links(setup_, program, recorded));
                EXPECT_TRUE(result.is_equal)
                    << num_replicas << " replicas, zero1 " << zero1 << ", seed " << seed << ": " << result.difference;
            }
        }
    }
}

TEST_P(OverLinks, spansSayWhenLinksMovedWhatActionsGaveThem) {
    Program program = cut_program(setup_.prepared.program, cuts_, plain_schedule({0, 1, 1, 0}, 3));
    program.training.schedule = order_channels(program.training.schedule);
    RecordedLinks recorded({.waits_for_memory = true});
    InProcessWorld({.num_ranks = 2}).run([&](Transport& bytes) {
        const auto maker = recorded.maker(bytes.rank());
        LinkTransport links(bytes, links_of(program), *maker);
        Engine engine(setup_.plan, program, setup_.prepared.sources, setup_.data, links);
        const std::vector<Action>& actions = program.training.schedule.actions[static_cast<size_t>(bytes.rank())];
        engine.run_step(0);
        for (const ActionSpan& span : engine.executor().spans()) EXPECT_EQ(span.device_end, 0) << "nobody asked";
        engine.run_step(1);  // through the host: the first update has taken memory
        engine.executor().time_messages(true);
        engine.run_step(2);
        int num_moved = 0;
        for (size_t i = 0; i < actions.size(); ++i) {
            const ActionSpan& span = engine.executor().spans()[i];
            if (span.device_end == 0) continue;  // a plain value, or the CPU's own work
            EXPECT_TRUE(is_transfer(actions[i].kind));
            EXPECT_LE(span.begin, span.device_begin);
            EXPECT_LE(span.device_begin, span.device_end);
            ++num_moved;
        }
        EXPECT_GE(num_moved, 3 * 4) << "values and gradients of three microbatches, there and back";
        engine.executor().time_messages(false);
        engine.run_step(3);
        for (const ActionSpan& span : engine.executor().spans()) EXPECT_EQ(span.device_end, 0);
        links.finish_sends();
    });
}

TEST_P(OverLinks, aTurnedBitIsSeen) {
    const RunRecord reference = run_reference(setup_, kStepsOverLinks);
    const Program program = cut_program(setup_.prepared.program, cuts_, plain_schedule({0, 1, 1, 0}, 3));
    int num_seen = 0;
    for (int64_t damaged = 6; damaged < 12; ++damaged) {
        RecordedLinks recorded({.waits_for_memory = true, .damaged = damaged});
        num_seen += compare_runs(reference, run_over_links(setup_, program, recorded)).is_equal ? 0 : 1;
    }
    EXPECT_GE(num_seen, 1) << "what a relu drops is not seen";
}

INSTANTIATE_TEST_SUITE_P(Models, OverLinks, ::testing::Values("share", "containers", "bn_cnn", "remembers"));

TEST(ReplicasOverLinks, ATurnedBitOfWhatTheySendIsSeen) {
    if (!test_device().is_cpu()) GTEST_SKIP() << "links between threads carry memory of the CPU";
    const TemporaryFolder folder;
    Rig setup = set_up_tiny("mlp", folder.path("."), with_replicas(2, /*zero1=*/true));
    const Program program = cut_program(setup.prepared.program, {}, plain_schedule({0}, 3));
    const int64_t num_connecting = 2 * static_cast<int64_t>(links_of(program).size());  // one byte each way
    const auto run = [&](int64_t damaged, RecordedLinks::Options options = {.waits_for_memory = true}) {
        options.damaged = damaged;
        RecordedLinks recorded(options);
        const RunRecord record = run_over_links(setup, program, recorded, /*steps=*/2);  // the first through the host
        return std::pair(record, recorded.num_done());
    };
    const auto [whole, num_done] = run(-1);
    EXPECT_GE(num_done, 2 * num_connecting) << "gradients, sums and parameters go over links";
    int64_t num_seen = 0;
    for (int64_t message = num_connecting; message < num_done; ++message) {
        num_seen += compare_runs(whole, run(message).first).is_equal ? 0 : 1;
    }
    EXPECT_GT(num_seen, (num_done - num_connecting) / 2) << "of " << num_done - num_connecting;
}

}  // namespace
}  // namespace vpp::test
