#include "stage/segment_io.hpp"

#include <algorithm>
#include <set>

#include "graph/stages.hpp"
#include "support/pipeline.hpp"
#include "unit/stage/support.hpp"

namespace vpp::test {
namespace {

Rig open_tiny(const std::string& name) {
    const TemporaryFolder folder;
    return set_up_tiny(name, folder.path("."));
}

bool holds(const std::vector<int>& list, int value) {
    return std::find(list.begin(), list.end(), value) != list.end();
}

/// Every value that an op of the stage uses is made in it, bound as a live-in, or a parameter; edges match.
void check_stage(const Graph& graph, const Split& split, int index) {
    const SegmentIo io = find_segment_io(graph, split, index);
    const OpRange ops = split.stages[static_cast<size_t>(index)].ops;
    for (int op = ops.begin; op < ops.end; ++op) {
        for (int value : graph.ops[static_cast<size_t>(op)].inputs) {
            const GraphValue& entry = graph.values[static_cast<size_t>(value)];
            if (entry.producer >= ops.begin && entry.producer < ops.end) continue;
            const int parameter =
                entry.producer < 0 ? graph.tensors[static_cast<size_t>(entry.tensors[0])].parameter : -1;
            EXPECT_TRUE(parameter >= 0 ? holds(io.parameters, parameter) : holds(io.live_ins, value)) << entry.name;
            EXPECT_TRUE(entry.producer < ops.begin) << "values come from before";
        }
    }
    for (const Edge& edge : split.edges) {
        EXPECT_EQ(holds(io.exports, edge.id), edge.producer == index) << edge.name;
        if (edge.tensor < 0) continue;
        EXPECT_TRUE(edge.consumer != index || holds(io.received, edge.tensor)) << edge.name;
        const bool arrives = edge.has_gradient && edge.gradient_to == index;
        EXPECT_TRUE(!arrives || holds(io.gradient_arrives, edge.tensor)) << edge.name;
    }
    for (size_t value = 0; value < graph.values.size(); ++value) {
        const GraphValue& entry = graph.values[value];
        const bool is_made_here = entry.producer >= ops.begin && entry.producer < ops.end;
        const bool is_used_later = !entry.uses.empty() && entry.uses.back() >= ops.end;
        if (!is_made_here || !is_used_later || entry.tensors.empty()) continue;
        EXPECT_TRUE(holds(io.live_outs, static_cast<int>(value))) << entry.name << " may be another tensor one day";
    }
    EXPECT_EQ(io.makes_loss, index == split.loss_stage);
    EXPECT_EQ(holds(io.live_outs, graph.loss), io.makes_loss);
    for (const std::vector<int>* list : {&io.live_ins, &io.parameters, &io.live_outs, &io.received}) {
        EXPECT_TRUE(std::is_sorted(list->begin(), list->end()));
        EXPECT_EQ(std::set<int>(list->begin(), list->end()).size(), list->size()) << "each once";
    }
}

TEST(SegmentIo, coversEveryCutOfEveryKindOfModel) {
    for (const char* name : {"share", "containers", "views", "frozen"}) {
        const Rig setup = open_tiny(name);
        const std::vector<int> legal = setup.legal_cuts();
        for (size_t i = 0; i + 1 < legal.size(); ++i) {
            const Split split = make_stages(setup.graph(), {legal[i], legal[i + 1]});
            for (int stage = 0; stage < 3; ++stage) check_stage(setup.graph(), split, stage);
        }
    }
}

TEST(SegmentIo, oneStageTakesTheModelsInputsAndGivesTheLoss) {
    const Rig setup = open_tiny("share");
    const SegmentIo io = find_segment_io(setup.graph(), make_stages(setup.graph(), {}), 0);
    EXPECT_EQ(io.live_ins.size(), 2u);
    EXPECT_EQ(io.live_outs, std::vector<int>{setup.graph().loss});
    EXPECT_TRUE(io.received.empty() && io.exports.empty() && io.gradient_arrives.empty());
}

TEST(SegmentIo, theLastStageGathersOutputsAndTallies) {
    Rig setup = open_tiny("share");
    Graph& graph = setup.prepared.program.training.graph;
    const Split split = make_stages(graph, {setup.legal_cuts().at(0)});
    const auto gathered_by = [&](int stage) { return find_segment_io(graph, split, stage).gathered; };
    EXPECT_EQ(gathered_by(1), -1) << "there are none";
    graph.tallies = {{"hits", 0}};
    EXPECT_EQ(gathered_by(0), -1);
    EXPECT_EQ(gathered_by(1), graph.ops.back().outputs[0]);
}

/// The value s of "share" is used in all three stages: the middle one gets its gradient and hands its own sum on.
TEST(SegmentIo, sendsTheGradientOfASharedValueBackThroughItsUsers) {
    const Rig setup = open_tiny("share");
    const Graph& graph = setup.graph();
    const auto shared = std::max_element(graph.values.begin(), graph.values.end(), [](const auto& a, const auto& b) {
        const auto uses = [](const GraphValue& value) { return value.producer < 0 ? 0 : value.uses.size(); };
        return uses(a) < uses(b);
    });
    const int tensor = shared->tensors[0];
    const std::vector<int> legal = setup.legal_cuts();
    const auto behind = [&](int op) { return *std::upper_bound(legal.begin(), legal.end(), op); };
    const Split split = make_stages(graph, {behind(shared->uses[0]), behind(shared->uses[2])});
    std::vector<int> gives;
    for (const Edge& edge : split.edges) {
        if (edge.tensor == tensor) gives.push_back(edge.gradient_to);
    }
    EXPECT_EQ(gives, (std::vector<int>{0, 1})) << "not both to the producer";
    EXPECT_TRUE(holds(find_segment_io(graph, split, 1).gradient_arrives, tensor));
    EXPECT_TRUE(holds(find_segment_io(graph, split, 1).received, tensor));
    EXPECT_TRUE(holds(find_segment_io(graph, split, 0).gradient_arrives, tensor));
}

}  // namespace
}  // namespace vpp::test
