#include "schedule/symbolic.hpp"

#include <algorithm>

#include "schedule/generators.hpp"
#include "schedule/tied_order.hpp"
#include "unit/schedule/support.hpp"
#include "unit/schedule/variants.hpp"

namespace vpp {
namespace {

using testing::error_text;
using testing::split_backwards;
using enum ActionKind;

std::string joined(const std::vector<std::string>& texts) {
    std::string all;
    for (const std::string& one : texts) all += one + "\n";
    return all;
}

/// A shape that every training schedule of the registry accepts or refuses with a plan error.
struct Shape {
    int num_ranks, stages_per_rank, num_microbatches;
};

TEST(Symbolic, TheReferenceIsTheSumInMicrobatchOrder) {
    SymbolicModel model;
    model.ops = {{{}, 0}, {{0}, 0}};  // one parameter used twice
    model.first_op = {0};
    model = finish(model);
    TreePool pool;
    const SymbolicStep step = run_on_one_device(pool, model, 2, false);
    EXPECT_EQ(pool.text(step.gradients[0], 2),
              "((dw1[0](loss[0], v0[0], w0) + dw0[0](dv1[0], data[0], w0)) + (dw1[1] + dw0[1]))");
    EXPECT_EQ(pool.text(step.values[1][1], 4), "v1[1](v0[1](data[1], w0), w0)");
    EXPECT_EQ(pool.text(run_on_one_device(pool, model, 1, true).gradients[0], 1), "undefined");
}

// Every schedule, over models with skips, several uses, tied parameters and recomputed segments.
TEST(Symbolic, EveryScheduleGivesTheTreesOfOneDevice) {
    uint64_t seed = 0;
    int num_run = 0, num_refused = 0;
    for (const ScheduleKind& kind : schedule_kinds()) {
        if (*kind.same_as) continue;
        const bool tries_many_blocks = std::string(kind.name) == "V_ADAPTIVE";  // some 0.1 s each
        for (int trial = 0; trial < (tries_many_blocks ? 20 : 120); ++trial) {
            const uint64_t key = mix64(++seed);
            const int v = std::min(kind.fewest_per_rank + static_cast<int>(key % 3), kind.most_per_rank);
            const Shape shape{1 + static_cast<int>(key / 3 % 4), v, 1 + static_cast<int>(key / 12 % 9)};
            Schedule compute;
            try {
                compute = make_schedule(kind.name, shape.num_ranks, shape.stages_per_rank, shape.num_microbatches);
            } catch (const Error& error) {
                ASSERT_EQ(error.kind(), ErrorKind::Plan);
                ++num_refused;
                continue;
            }
            const SymbolicModel model = make_random_model(compute.num_stages(), seed);
            const Schedule lowered = lower(order_tied(compute, model.schedule_edges()), model.schedule_edges());
            ASSERT_NO_THROW(check_schedule(lowered, model.schedule_edges())) << kind.name;
            const std::vector<std::string> differences = symbolic_differences(model, lowered);
            ASSERT_TRUE(differences.empty()) << kind.name << ", seed " << seed << "\n" << joined(differences);
            ++num_run;
        }
    }
    EXPECT_GT(num_run, 2 * num_refused);
}

TEST(Symbolic, SplitBackwardsGiveTheSameTrees) {
    for (uint64_t seed = 0; seed < 300; ++seed) {
        const SymbolicModel model = make_random_model(4, seed);
        const Schedule compute =
            split_backwards(seed % 2 ? make_schedule("1F1B", 4, 1, 5) : make_schedule("INTERLEAVED_1F1B", 2, 2, 4));
        const Schedule lowered = lower(compute, model.schedule_edges());
        ASSERT_NO_THROW(check_schedule(lowered, model.schedule_edges()));
        const std::vector<std::string> differences = symbolic_differences(model, lowered);
        ASSERT_TRUE(differences.empty()) << joined(differences);
    }
}

// Out-of-turn results are parked: descending backwards give the same trees.
TEST(Symbolic, DescendingBackwardsAreAddedInOrder) {
    Schedule compute = make_schedule("GPIPE", 3, 1, 4);
    for (std::vector<Action>& list : compute.actions) std::reverse(list.begin() + 4, list.end());
    for (uint64_t seed = 0; seed < 50; ++seed) {
        const SymbolicModel model = make_random_model(3, seed);
        EXPECT_EQ(joined(symbolic_differences(model, lower(compute, model.schedule_edges()))), "");
    }
}

// Negative controls

/// Two stages, one parameter each, three microbatches of 1F1B.
struct Control {
    SymbolicModel model;
    Schedule lowered;

    Control() {
        model.ops = {{{}, 0}, {{0}, 1}};
        model.first_op = {0, 1};
        model = finish(model);
        lowered = lower(make_schedule("1F1B", 2, 1, 3), model.schedule_edges());
    }
    size_t find(size_t rank, const std::string& text) const {
        const std::vector<Action>& list = lowered.actions[rank];
        for (size_t k = 0; k < list.size(); ++k) {
            if (to_text(list[k]) == text) return k;
        }
        ADD_FAILURE() << text;
        return 0;
    }
    void drop(size_t rank, const std::string& text) {
        lowered.actions[rank].erase(lowered.actions[rank].begin() + static_cast<std::ptrdiff_t>(find(rank, text)));
    }
    std::string differences(Channels channels = Channels::Tagged) const {
        return joined(symbolic_differences(model, lowered, channels));
    }
};

TEST(SymbolicControls, ActionsThatCannotRunAreSaid) {
    const auto first_problem = [](const Action& action) {
        Control control;
        control.lowered.actions[0].insert(control.lowered.actions[0].begin(), action);
        const std::vector<std::string> differences = symbolic_differences(control.model, control.lowered);
        return differences.empty() ? "" : differences.front();
    };
    EXPECT_EQ(first_problem({F, 2, 0}), "rank 0: 2F0 names no stage");
    EXPECT_EQ(first_problem({F, 1, 0}), "rank 0: 1F0 has no stage to run on");
    EXPECT_EQ(first_problem({ReduceGrad, 1}), "rank 0: 1REDUCE_GRAD has no stage to run on");
    EXPECT_EQ(first_problem({F, 0, 3}), "rank 0: 0F3 names no microbatch");
    EXPECT_CONTAINS(first_problem({SendF, 0, 0, 1, 1}), " names no edge");
    EXPECT_CONTAINS(first_problem({SendF, 0, 0, 0, 2}), " names no rank");
}

TEST(SymbolicControls, TheGoodOneIsGood) {
    EXPECT_EQ(Control().differences(), "");
    EXPECT_EQ(Control().differences(Channels::Ordered), "");
}

TEST(SymbolicControls, ADroppedTermIsSeen) {
    Control control;
    control.drop(1, "1B2");
    const std::string text = control.differences();
    EXPECT_CONTAINS(text,
                    "stage 1, gradient of parameter 1: (dw1[0] + dw1[1]) instead of ((dw1[0] + dw1[1]) + dw1[2])");
    EXPECT_CONTAINS(text, "stage 0, gradient of parameter 0");
}

TEST(SymbolicControls, ADroppedMessageIsSeen) {
    Control control;
    control.drop(0, "0RECV_B1<1");
    EXPECT_CONTAINS(control.differences(), "(dw0[0](dv1[0], data[0], w0) + dw0[1](missing, data[1], w0)) instead of ");
    control.drop(0, "0SEND_F1>1");
    EXPECT_CONTAINS(control.differences(), "rank 1 waits for ever at 1RECV_F1<0");
}

TEST(SymbolicControls, ATermThatComesTwiceIsSeen) {
    Control control;
    std::vector<Action>& list = control.lowered.actions[1];
    list.insert(list.begin() + static_cast<std::ptrdiff_t>(control.find(1, "1B1")) + 1, Action{B, 1, 1});
    EXPECT_CONTAINS(control.differences(), "stage 1, gradient of parameter 1: ");
}

TEST(SymbolicControls, TheWrongMicrobatchIsSeen) {
    Control control;
    control.lowered.actions[1][control.find(1, "1B1")].microbatch = 2;
    EXPECT_NE(control.differences(), "");
    control = Control();
    // The messages cross: stage 1 computes microbatch 1 with the values of 2 and the other way round.
    std::vector<Action>& list = control.lowered.actions[1];
    list[control.find(1, "1RECV_F1<0")].microbatch = 2;
    EXPECT_NE(control.differences(), "");
}

TEST(SymbolicControls, ASwappedOrderIsSeen) {
    Control control;
    std::vector<Action>& list = control.lowered.actions[1];
    std::swap(list[control.find(1, "1F0")], list[control.find(1, "1RECV_F0<0")]);
    EXPECT_CONTAINS(control.differences(), "stage 1, value 1 of microbatch 0: ");
    control = Control();
    std::vector<Action>& first = control.lowered.actions[0];
    std::swap(first[control.find(0, "0F1")], first[control.find(0, "0SEND_F1>1")]);
    EXPECT_CONTAINS(control.differences(), "missing instead of v0[1]");
}

// On ordered channels two swapped receives take each other's messages.
TEST(SymbolicControls, OrderedChannelsMixUpSwappedReceives) {
    Control control;
    control.lowered = lower(make_schedule("GPIPE", 2, 1, 2), control.model.schedule_edges());
    control.lowered.actions[1] = {{RecvF, 1, 1, 0, 0}, {RecvF, 1, 0, 0, 0}, {F, 1, 0}, {F, 1, 1},
                                  {B, 1, 0},           {SendB, 1, 0, 0, 0}, {B, 1, 1}, {SendB, 1, 1, 0, 0}};
    EXPECT_EQ(control.differences(Channels::Tagged), "");
    EXPECT_CONTAINS(control.differences(Channels::Ordered), "value 1 of microbatch 0: data[1] instead of data[0]");
}

TEST(SymbolicControls, ABufferThatAdvancesOutOfOrderIsSeen) {
    SymbolicModel model;
    model.ops = {{{}, 0, true, false, true}};
    model.first_op = {0};
    model = finish(model);
    const Schedule schedule{"X", 1, 2, {0}, {{{F, 0, 1}, {F, 0, 0}, {B, 0, 0}, {B, 0, 1}}}};
    EXPECT_CONTAINS(joined(symbolic_differences(model, schedule)), "stage 0, buffer of op 0: ");
}

TEST(SymbolicControls, AReductionBeforeTheLastTermIsSeen) {
    SymbolicModel model;
    model.ops = {{{}, 0}};
    model.first_op = {0};
    model = finish(model);
    Schedule schedule{"X", 1, 2, {0}, {{{F, 0, 0}, {F, 0, 1}, {B, 0, 0}, {B, 0, 1}, {ReduceGrad, 0}}}};
    EXPECT_EQ(joined(symbolic_differences(model, schedule)), "");
    std::swap(schedule.actions[0][3], schedule.actions[0][4]);
    EXPECT_CONTAINS(joined(symbolic_differences(model, schedule)),
                    "(reduced dw0[0] + dw0[1]) instead of reduced (dw0[0] + dw0[1])");
}

// A chain that skips a consumer loses its term or brackets the sum in another way.
TEST(SymbolicControls, AGradientThatTakesAnotherWayIsSeen) {
    SymbolicModel model;
    model.ops = {{{}, 0}, {{0}, 1}, {{1, 0}, 2}, {{2, 0}, 3}};
    model.first_op = {0, 1, 2, 3};
    model = finish(model);
    const Schedule compute = make_schedule("1F1B", 4, 1, 2);
    EXPECT_EQ(joined(symbolic_differences(model, lower(compute, model.schedule_edges()))), "");
    SymbolicModel wrong = model;
    const auto skipped = std::find_if(wrong.edges.begin(), wrong.edges.end(), [](const SymbolicEdge& edge) {
        return edge.edge.producer == 0 && edge.edge.consumer == 3;
    });
    ASSERT_NE(skipped, wrong.edges.end());
    EXPECT_EQ(skipped->edge.gradient_to, 2);
    skipped->edge.gradient_to = 1;
    EXPECT_CONTAINS(joined(symbolic_differences(wrong, lower(compute, wrong.schedule_edges()))),
                    "stage 0, gradient of parameter 0: ");
}

/// Two stages; the second recomputes its random op, which has a buffer.
SymbolicModel recomputing(const RecomputeRules& rules) {
    SymbolicModel model;
    model.ops = {{{}, 0}, {{0}, 1, true, true, true}, {{1}, 2}};
    model.first_op = {0, 1};
    model.segments = {{1, 2}};
    model.recompute = rules;
    return finish(model);
}

std::string recompute_differences(const RecomputeRules& rules) {
    const SymbolicModel model = recomputing(rules);
    const Schedule compute = split_backwards(make_schedule("1F1B", 2, 1, 2));
    return joined(symbolic_differences(model, lower(compute, model.schedule_edges())));
}

TEST(SymbolicRecompute, OnceForEachMicrobatchAtBOrI) {
    EXPECT_EQ(recompute_differences({}), "");
    const SymbolicModel model = recomputing({});
    EXPECT_EQ(joined(symbolic_differences(model, lower(make_schedule("GPIPE", 2, 1, 3), model.schedule_edges()))), "");
    const Schedule evaluation = make_schedule("FORWARD_ONLY", 2, 1, 3);
    EXPECT_EQ(joined(symbolic_differences(model, lower(evaluation, model.schedule_edges()))), "");
}

TEST(SymbolicRecompute, ABufferThatAdvancesAgainIsSeen) {
    EXPECT_CONTAINS(
        recompute_differences({.keeps_buffers = false}),
        "stage 1, buffer of op 1: buffer1[0..1](buffer1[0], v1[1]) instead of buffer1[0](undefined, v1[0])");
}

TEST(SymbolicRecompute, ANewKeyIsSeen) {
    EXPECT_CONTAINS(recompute_differences({.repeats_keys = false}), "key1[0]#1");
}

TEST(SymbolicRecompute, DoneAgainForWIsSeen) {
    const std::string again = recompute_differences({.is_kept_to_weight = false});
    EXPECT_CONTAINS(again, "stage 1, op 1 of microbatch 0: its forward is done 3 times instead of 2");
    EXPECT_EQ(again.find("gradient"), std::string::npos) << again;
    EXPECT_CONTAINS(recompute_differences({.keeps_buffers = false, .is_kept_to_weight = false}), "buffer of op 1");
    EXPECT_CONTAINS(recompute_differences({.repeats_keys = false, .is_kept_to_weight = false}), "key1[0]#2");
}

/// A stage is one op that is recomputed: random, with a buffer.
SymbolicModel recomputed_tower(int num_stages) {
    SymbolicModel model;
    for (int stage = 0; stage < num_stages; ++stage) {
        SymbolicOp op{{}, stage, true, true, true};
        if (stage > 0) op.inputs = {stage - 1};
        model.ops.push_back(op);
        model.first_op.push_back(stage);
        model.segments.push_back({stage, stage + 1});
    }
    return finish(model);
}

// An engine that breaks a rule is seen with every schedule, over random models.
TEST(SymbolicRecompute, EveryScheduleSeesABrokenRule) {
    const std::vector<RecomputeRules> broken{
        {.keeps_buffers = false}, {.repeats_keys = false}, {.is_kept_to_weight = false}};
    for (const ScheduleKind& kind : schedule_kinds()) {
        if (!kind.trains) continue;
        const Schedule compute = make_schedule(kind.name, 2, kind.fewest_per_rank, 4);
        for (size_t rule = 0; rule < broken.size(); ++rule) {
            if (rule == 2 && !kind.splits_backward) continue;
            SymbolicModel model = recomputed_tower(compute.num_stages());
            const Schedule lowered = lower(compute, model.schedule_edges());
            EXPECT_EQ(joined(symbolic_differences(model, lowered)), "") << kind.name;
            model.recompute = broken[rule];
            EXPECT_NE(joined(symbolic_differences(model, lowered)), "") << kind.name << ", rule " << rule;
        }
    }
}

TEST(SymbolicTied, TheGradientIsOneSumForEachMicrobatch) {
    SymbolicModel model;
    model.ops = {{{}, 0}, {{0}, 1}, {{1}, 0}};  // embedding and head
    model.first_op = {0, 1, 2};
    model = finish(model);
    const Schedule lowered = lower(split_backwards(make_schedule("1F1B", 3, 1, 2)), model.schedule_edges());
    EXPECT_EQ(to_text(lowered.actions[2]),
              "2RECV_F0<1 2F0 2I0 2SEND_B0>1 2RECV_F1<1 2F1 2I1 2SEND_B1>1 2W0 2SEND_B0>0 2W1 2SEND_B1>0");
    TreePool pool;
    EXPECT_EQ(pool.text(run_lists(pool, model, lowered).gradients[0], 2),
              "((dw2[0](loss[0], v1[0], w0) + dw0[0](dv1[0], data[0], w0)) + (dw2[1] + dw0[1]))");
    EXPECT_EQ(joined(symbolic_differences(model, lowered)), "");
}

TEST(SymbolicTied, TheOwnerWaitsForTheOtherStagesW) {
    SymbolicModel model;
    model.ops = {{{}, 0}, {{0}, 0}};
    model.first_op = {0, 1};
    model = finish(model);
    // Both on one rank, W of the owner first: its gradient lacks the part of stage 1.
    const Schedule early{"X", 1, 1, {0, 0}, {{{F, 0, 0}, {F, 1, 0}, {I, 1, 0}, {I, 0, 0}, {W, 0, 0}, {W, 1, 0}}}};
    EXPECT_CONTAINS(joined(symbolic_differences(model, early)),
                    "stage 0, gradient of parameter 0: missing instead of dw1[0](");
    EXPECT_CONTAINS(error_text(ErrorKind::Plan, [&] { check_schedule(early, model.schedule_edges()); }),
                    "the gradient of edge 1");
    Schedule late = early;
    std::swap(late.actions[0][4], late.actions[0][5]);
    EXPECT_EQ(joined(symbolic_differences(model, late)), "");
    EXPECT_NO_THROW(check_schedule(late, model.schedule_edges()));
    // On two ranks the owner's W without its message.
    Schedule split = lower({"X", 2, 1, {0, 1}, {{{F, 0, 0}, {I, 0, 0}, {W, 0, 0}}, {{F, 1, 0}, {I, 1, 0}, {W, 1, 0}}}},
                           model.schedule_edges());
    EXPECT_EQ(joined(symbolic_differences(model, split)), "");
    std::vector<Action>& owner = split.actions[0];
    EXPECT_EQ(to_text(owner), "0F0 0SEND_F0>1 0RECV_B0<1 0I0 0RECV_B0<1 0W0");
    std::swap(owner[4], owner[5]);
    EXPECT_CONTAINS(joined(symbolic_differences(model, split)),
                    "stage 0, gradient of parameter 0: missing instead of dw1[0](");
}

}  // namespace
}  // namespace vpp
