#include "engine/rehearsal.hpp"

#include <algorithm>

#include "program/lowered_schedule.hpp"
#include "program/one_microbatch.hpp"
#include "unit/engine/support.hpp"

namespace vpp::test {
namespace {

struct Rehearsed {
    RehearsalReport report;
    std::map<std::string, std::string> before, after;  ///< digests of what would be saved
};

Rehearsed run_rehearsal(const std::string& model, const std::vector<std::string>& set) {
    const TemporaryFolder folder;
    Rig setup = set_up_tiny(model, folder.path("."), set);
    const Program& whole = setup.prepared.program;
    const Program one = one_microbatch(whole, message_order(setup.plan));
    Rehearsed result;
    with_engines(setup, one, [&](Engine& engine) {
        const auto note = [&](std::map<std::string, std::string>& state) {
            const auto own = digests(engine.state());
            state.insert(own.begin(), own.end());
        };
        note(result.before);
        const RehearsalReport report = rehearse(engine, one, whole);
        note(result.after);
        if (engine.transport().rank() == 0) result.report = report;
    });
    return result;
}

TEST(Rehearsal, TellsOfEveryStageRankAndEdge) {
    constexpr int64_t kLayersBytes = 2 * (8 * 8 + 8) * 4;  // of a rank, each with a weight and a bias
    const RehearsalReport report = run_rehearsal("mlp", {"mesh.pp=2"}).report;
    EXPECT_EQ(report.num_microbatches, 3);
    EXPECT_EQ(report.microbatch_size, 2);
    EXPECT_GT(report.loss, 0);
    ASSERT_EQ(report.stages.size(), 2U);
    ASSERT_EQ(report.ranks.size(), 2U);
    for (const StageTimesEvent& stage : report.stages) {
        EXPECT_GT(stage.forward_ms, 0);
        EXPECT_GT(stage.backward_ms, 0);
    }
    for (const RehearsalReport::Rank& rank : report.ranks) {
        EXPECT_GT(rank.state_bytes, 0);
        EXPECT_EQ(rank.full_state_bytes, 3 * kLayersBytes + 4 * 4) << "AdamW has two moments, and counts steps";
        EXPECT_GE(rank.most_simulated_bytes, rank.least_simulated_bytes);
        EXPECT_GT(rank.process_bytes, 0);
    }
    ASSERT_FALSE(report.edges.empty());
    EXPECT_EQ(report.edges[0].from, 0);
    EXPECT_EQ(report.edges[0].to, 1);
    EXPECT_EQ(report.edges[0].dtype, "float32");
    EXPECT_EQ(report.edges[0].shape.at(0), 2);
    const auto longest = std::ranges::max(report.stages, {}, &StageTimesEvent::forward_ms);
    EXPECT_GT(report.step_ms, 3 * (longest.forward_ms + longest.backward_ms) * 0.5);
    EXPECT_GT(report.bubble, 0);
}

TEST(Rehearsal, ChangesNothingThatWouldBeSaved) {
    for (const char* model : {"bn_cnn", "dropout"}) {
        const Rehearsed done = run_rehearsal(model, {"mesh.pp=2"});
        EXPECT_FALSE(done.before.empty());
        EXPECT_EQ(done.before, done.after) << model;
    }
}

TEST(Rehearsal, RunsHalvesAndReplicas) {
    std::vector<std::string> halves{"mesh.pp=2", "pipeline.schedule_type=ZERO_BUBBLE_H1"};
    EXPECT_EQ(run_rehearsal("mlp", halves).report.schedule, "ZERO_BUBBLE_H1");
    EXPECT_EQ(run_rehearsal("mlp", {"mesh.pp=2", "pipeline.overlap_p2p_comm=false"}).report.stages.size(), 2U);
    std::vector<std::string> replicas = with_replicas(2);
    replicas.emplace_back("mesh.pp=2");
    EXPECT_EQ(run_rehearsal("mlp", replicas).report.ranks.size(), 4U);
}

}  // namespace
}  // namespace vpp::test
