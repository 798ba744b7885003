#include "schedule/checker.hpp"

#include <algorithm>
#include <set>

#include "schedule/generators.hpp"
#include "schedule/size.hpp"
#include "unit/schedule/support.hpp"

namespace vpp {
namespace {

using testing::error_text;
using enum ActionKind;

/// 1F1B over two ranks with three microbatches, lowered: the schedule that the tests break.
Schedule good() {
    return lower(make_schedule("1F1B", 2, 1, 3), chain_edges(2));
}

/// The place of the action with that text; the test fails when it is not there.
size_t index_of_action(const std::vector<Action>& list, const std::string& text) {
    for (size_t k = 0; k < list.size(); ++k) {
        if (to_text(list[k]) == text) return k;
    }
    ADD_FAILURE() << text << " is not in " << to_text(list);
    return 0;
}

Action& at(Schedule& schedule, size_t rank, const std::string& text) {
    return schedule.actions[rank][index_of_action(schedule.actions[rank], text)];
}

void remove(Schedule& schedule, size_t rank, const std::string& text) {
    std::vector<Action>& list = schedule.actions[rank];
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(index_of_action(list, text)));
}

void swap(Schedule& schedule, size_t rank, const std::string& one, const std::string& other) {
    std::swap(at(schedule, rank, one), at(schedule, rank, other));
}

std::string problem(const Schedule& schedule, const std::vector<ScheduleEdge>& edges = chain_edges(2)) {
    return error_text(ErrorKind::Plan, [&] { check_schedule(schedule, edges); });
}

TEST(CheckSchedule, CountsWhatItProves) {
    const ScheduleFacts facts = check_schedule(good(), chain_edges(2));
    EXPECT_EQ(facts.num_computing, 12);
    EXPECT_EQ(facts.num_messages, 6);
    EXPECT_EQ(facts.peak_in_flight, (std::vector<int>{2, 1}));
}

TEST(CheckSchedule, AcceptsDescendingBackwards) {
    const Schedule schedule{"X", 1, 2, {0}, {{{F, 0, 0}, {F, 0, 1}, {B, 0, 1}, {B, 0, 0}}}};
    EXPECT_NO_THROW(check_schedule(schedule, {}));
}

TEST(CheckSchedule, AcceptsAMixOfWholeAndSplitBackwards) {
    const Schedule schedule{"X", 1, 2, {0}, {{{F, 0, 0}, {F, 0, 1}, {I, 0, 0}, {B, 0, 1}, {W, 0, 0}, {ReduceGrad, 0}}}};
    EXPECT_EQ(check_schedule(schedule, {}).num_computing, 5);
}

// Shape

TEST(CheckShape, ListsForEveryRank) {
    Schedule schedule = good();
    schedule.actions.pop_back();
    EXPECT_CONTAINS(problem(schedule), "it has lists for 1 rank (expected 2, the number of ranks)");
}

TEST(CheckShape, StagesOnExistingRanks) {
    Schedule schedule = good();
    schedule.rank_of_stage[1] = 2;
    EXPECT_CONTAINS(problem(schedule), "stage 1 is placed on rank 2 (expected 0 to 1)");
    schedule.rank_of_stage[1] = -1;
    EXPECT_CONTAINS(problem(schedule), "stage 1 is placed on rank -1");
}

TEST(CheckShape, HostileCountsAreRefusedBeforeMemoryIsTaken) {
    Schedule schedule = good();
    schedule.num_microbatches = INT32_MAX;
    EXPECT_CONTAINS(problem(schedule), "stages x microbatches");
    schedule.num_microbatches = 0;
    EXPECT_CONTAINS(problem(schedule), "at least one rank and one microbatch");
    schedule.num_microbatches = -1;
    EXPECT_CONTAINS(problem(schedule), "at least one rank and one microbatch");
    EXPECT_CONTAINS(problem({"X", 1, 1, {}, {{}}}, {}), "stages x microbatches is 0 x 1");
}

// Computing actions

TEST(CheckComputing, AMissingBackwardIsNamed) {
    Schedule schedule = good();
    remove(schedule, 1, "1B2");
    EXPECT_EQ(problem(schedule), "schedule 1F1B: stage 1, microbatch 2: B is missing (or I and W)");
}

TEST(CheckComputing, AMissingForwardIsNamed) {
    Schedule schedule = good();
    remove(schedule, 0, "0F1");
    EXPECT_CONTAINS(problem(schedule), "stage 0, microbatch 1: F is missing");
}

TEST(CheckComputing, HalvesOfABackwardAreNamed) {
    const auto with = [](std::vector<Action> list) { return Schedule{"X", 1, 1, {0}, {std::move(list)}}; };
    EXPECT_CONTAINS(problem(with({{F, 0, 0}, {I, 0, 0}}), {}), "W is missing");
    EXPECT_CONTAINS(problem(with({{F, 0, 0}, {W, 0, 0}}), {}), "I is missing");
    EXPECT_CONTAINS(problem(with({{F, 0, 0}, {B, 0, 0}, {W, 0, 0}}), {}), "B beside I or W");
    EXPECT_CONTAINS(problem(with({{F, 0, 0}, {W, 0, 0}, {I, 0, 0}}), {}), "0W0 comes before 0I0");
    EXPECT_CONTAINS(problem(with({{I, 0, 0}, {F, 0, 0}, {W, 0, 0}}), {}), "0I0 comes before 0F0");
    EXPECT_CONTAINS(problem(with({{B, 0, 0}, {F, 0, 0}}), {}), "0B0 comes before 0F0");
}

TEST(CheckComputing, ADuplicateIsNamedWithBothPlaces) {
    Schedule schedule = good();
    schedule.actions[1].push_back({B, 1, 0});
    EXPECT_CONTAINS(problem(schedule), "1B0 is there twice (actions 2 and 12 of rank 1)");
}

TEST(CheckComputing, TheWrongRankIsNamed) {
    Schedule schedule = good();
    remove(schedule, 1, "1B2");
    schedule.actions[0].push_back({B, 1, 2});
    EXPECT_CONTAINS(problem(schedule), "1B2 is on rank 0 (expected rank 1, where stage 1 is)");
}

TEST(CheckComputing, StagesAndMicrobatchesOutsideAreNamed) {
    for (int number : {-1, 7, INT32_MAX, INT32_MIN}) {
        Schedule schedule = good();
        schedule.actions[0].push_back({F, number, 0});
        EXPECT_CONTAINS(problem(schedule), "names a stage that is not there (stages 0 to 1)");
        schedule.actions[0].back() = {F, 0, number};
        EXPECT_CONTAINS(problem(schedule), "names a microbatch that is not there (microbatches 0 to 2)");
    }
}

TEST(CheckComputing, ForwardsKeepTheMicrobatchOrder) {
    const Schedule schedule{"X", 1, 2, {0}, {{{F, 0, 1}, {F, 0, 0}, {B, 0, 0}, {B, 0, 1}}}};
    EXPECT_CONTAINS(problem(schedule, {}), "0F1 comes before 0F0");
}

TEST(CheckComputing, ReduceGradComesOnceAndLast) {
    const auto with = [](std::vector<Action> list) { return Schedule{"X", 1, 1, {0}, {std::move(list)}}; };
    EXPECT_CONTAINS(problem(with({{F, 0, 0}, {ReduceGrad, 0}, {B, 0, 0}}), {}), "0REDUCE_GRAD comes before");
    EXPECT_CONTAINS(problem(with({{F, 0, 0}, {B, 0, 0}, {ReduceGrad, 0}, {ReduceGrad, 0}}), {}),
                    "0REDUCE_GRAD is there twice");
    // The last weight gradient need not be that of the last microbatch.
    const Schedule early{
        "X", 1, 2, {0}, {{{F, 0, 0}, {F, 0, 1}, {I, 0, 0}, {I, 0, 1}, {W, 0, 1}, {ReduceGrad, 0}, {W, 0, 0}}}};
    EXPECT_CONTAINS(problem(early, {}), "0REDUCE_GRAD comes before the stage's last weight gradient");
}

TEST(CheckComputing, ForwardOnlyHasNoBackward) {
    const Schedule schedule = lower(make_schedule("FORWARD_ONLY", 2, 1, 3), chain_edges(2));
    EXPECT_EQ(check_schedule(schedule, chain_edges(2)).num_messages, 3);
    for (ActionKind kind : {B, I, W}) {
        Schedule with_backward = schedule;
        with_backward.actions[0].push_back({kind, 0, 0});
        EXPECT_CONTAINS(problem(with_backward), "a backward in a forward-only schedule");
    }
    // A training schedule that lost all backwards is not taken for one of evaluation.
    Schedule training = lower(make_schedule("FORWARD_ONLY", 2, 1, 3), chain_edges(2));
    training.forward_only = false;
    EXPECT_CONTAINS(problem(training), "B is missing");
}

TEST(CheckComputing, SeveralProblemsComeAtOnceButNotWithoutEnd) {
    Schedule schedule = lower(make_schedule("GPIPE", 4, 1, 40), chain_edges(4));
    schedule.actions[2].clear();
    try {
        check_schedule(schedule, chain_edges(4));
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.problems().size(), 8U);
    }
}

TEST(CheckComputing, NamesCannotSteerATerminal) {
    Schedule schedule = good();
    schedule.name = "\x1b[2J";
    schedule.actions[0].clear();
    EXPECT_EQ(problem(schedule).find('\x1b'), std::string::npos);
}

// Messages

TEST(CheckMessages, AMissingSendIsNamed) {
    Schedule schedule = good();
    remove(schedule, 0, "0SEND_F1>1");
    EXPECT_EQ(
        problem(schedule),
        "schedule 1F1B: the value of edge 0, microbatch 1, from stage 0 (rank 0) to stage 1 (rank 1) has no SEND_F");
}

TEST(CheckMessages, AMissingReceiveIsNamed) {
    Schedule schedule = good();
    remove(schedule, 0, "0RECV_B2<1");
    EXPECT_EQ(problem(schedule),
              "schedule 1F1B: the gradient of edge 0, microbatch 2, from stage 1 (rank 1) to stage 0 "
              "(rank 0) has no RECV_B");
}

TEST(CheckMessages, AMissingGradientIsNamed) {
    Schedule schedule = good();
    remove(schedule, 1, "1SEND_B2>0");
    EXPECT_CONTAINS(problem(schedule),
                    "the gradient of edge 0, microbatch 2, from stage 1 (rank 1) to stage 0 (rank 0) has no SEND_B");
}

TEST(CheckMessages, TheWrongPeerIsNamed) {
    for (int peer : {0, 5, -1}) {
        Schedule schedule = good();
        at(schedule, 0, "0SEND_F1>1").peer = peer;
        EXPECT_CONTAINS(problem(schedule), "has the wrong peer (expected rank 1, where stage 1 is)");
    }
}

TEST(CheckMessages, TheWrongStageEdgeOrMicrobatchIsNamed) {
    Schedule schedule = good();
    at(schedule, 0, "0SEND_F1>1").stage = 1;
    EXPECT_CONTAINS(problem(schedule), "has the wrong stage (expected stage 0)");
    schedule = good();
    for (int edge : {-1, 1, INT32_MAX}) {
        schedule.actions[0][1].edge = edge;
        EXPECT_CONTAINS(problem(schedule), "names an edge that carries nothing this way");
    }
    schedule = good();
    for (int microbatch : {-1, 3, INT32_MIN}) {
        schedule.actions[0][1].microbatch = microbatch;
        EXPECT_CONTAINS(problem(schedule), "names a microbatch that is not there");
    }
}

TEST(CheckMessages, TransfersOnTheWrongRankOrTwiceAreNamed) {
    Schedule schedule = good();
    schedule.actions[1].push_back({SendF, 0, 1, 0, 1});
    EXPECT_CONTAINS(problem(schedule), "is on the wrong rank (expected rank 0)");
    schedule = good();
    schedule.actions[0].push_back({SendF, 0, 1, 0, 1});
    EXPECT_CONTAINS(problem(schedule), "is there twice");
}

TEST(CheckMessages, NothingIsSentWithinARankOrWithoutAGradient) {
    Schedule schedule = make_schedule("INTERLEAVED_1F1B", 1, 2, 1);
    schedule.actions[0].insert(schedule.actions[0].begin() + 1, {SendF, 0, 0, 0, 0});
    EXPECT_CONTAINS(problem(schedule), "from a rank to itself");
    const std::vector<ScheduleEdge> no_gradient{{0, 0, 1, false, 0}};
    EXPECT_CONTAINS(problem(good(), no_gradient), "carries nothing this way");
}

TEST(CheckMessages, OrderAroundTheComputingActions) {
    Schedule schedule = good();
    swap(schedule, 0, "0F1", "0SEND_F1>1");
    EXPECT_CONTAINS(problem(schedule),
                    "microbatch 1, from stage 0 (rank 0) to stage 1 (rank 1) is sent before it is made");
    schedule = good();
    swap(schedule, 0, "0B1", "0RECV_B1<1");
    EXPECT_CONTAINS(problem(schedule), "is received after it is used");
}

TEST(CheckMessages, HandOversOnOneRankAreOrdered) {
    const Schedule schedule{"X", 1, 1, {0, 0}, {{{F, 1, 0}, {F, 0, 0}, {B, 1, 0}, {B, 0, 0}}}};
    EXPECT_CONTAINS(problem(schedule),
                    "the value of edge 0, microbatch 0, from stage 0 (rank 0) to stage 1 (rank 0) is "
                    "used before it is made");
    const Schedule backward{"X", 1, 1, {0, 0}, {{{F, 0, 0}, {F, 1, 0}, {B, 0, 0}, {B, 1, 0}}}};
    EXPECT_CONTAINS(problem(backward), "the gradient of edge 0");
    EXPECT_NO_THROW(check_schedule(schedule, {}));  // without the edge nothing ties the stages
}

TEST(CheckMessages, EdgeIdsMayBeAnyNumbers) {
    const std::vector<ScheduleEdge> edges{{INT32_MAX, 0, 1, true, 0}, {7, 0, 1, false, 0}};
    Schedule lowered = lower(make_schedule("1F1B", 2, 1, 3), edges);
    EXPECT_EQ(check_schedule(lowered, edges).num_messages, 9);
    remove(lowered, 1, "1SEND_B1>0");
    EXPECT_CONTAINS(problem(lowered, edges), "the gradient of edge 2147483647, microbatch 1,");
}

// W of a tied parameter's owner waits for W of its other stage, not for I.
TEST(CheckMessages, TiedGradientsGoFromWToW) {
    const std::vector<ScheduleEdge> edges{{0, 0, 1, true, 0, true}};
    const Schedule compute{"X", 2, 1, {0, 1}, {{{F, 0, 0}, {I, 0, 0}, {W, 0, 0}}, {{F, 1, 0}, {I, 1, 0}, {W, 1, 0}}}};
    Schedule lowered = lower(compute, edges);
    EXPECT_EQ(to_text(lowered.actions[0]), "0F0 0I0 0RECV_B0<1 0W0");
    EXPECT_EQ(to_text(lowered.actions[1]), "1F0 1I0 1W0 1SEND_B0>0");
    EXPECT_EQ(check_schedule(lowered, edges).num_messages, 1);
    swap(lowered, 1, "1W0", "1SEND_B0>0");
    EXPECT_CONTAINS(problem(lowered, edges), "is sent before it is made");
    lowered = lower(compute, edges);
    swap(lowered, 0, "0W0", "0RECV_B0<1");
    EXPECT_CONTAINS(problem(lowered, edges), "is received after it is used");
}

TEST(CheckMessages, EdgesThatWereLeftOutAreMissed) {
    const std::vector<ScheduleEdge> edges{{0, 0, 1, true, 0}, {1, 0, 2, true, 1}, {2, 1, 2, true, 1}};
    const std::vector<ScheduleEdge> fewer{edges[0], edges[2]};
    const Schedule lowered = lower(make_schedule("1F1B", 3, 1, 2), fewer);
    EXPECT_CONTAINS(problem(lowered, edges), "the value of edge 1, microbatch 0, from stage 0");
    EXPECT_CONTAINS(problem(lowered, edges), "the gradient of edge 1, microbatch 0, from stage 2 (rank 2) to stage 1");
}

// Deadlock

TEST(CheckEnds, ACircularWaitIsShownRankByRank) {
    // Rank 1 wants F2 before it gives B0; rank 0 wants B0 before it gives F2.
    Schedule schedule = make_schedule("1F1B", 2, 1, 3);
    schedule.actions[1] = {{F, 1, 0}, {F, 1, 1}, {F, 1, 2}, {B, 1, 0}, {B, 1, 1}, {B, 1, 2}};
    EXPECT_EQ(problem(lower(schedule, chain_edges(2))),
              "schedule 1F1B: it never ends: rank 0 waits at 0RECV_B0<1 (action 4 of 12, edge 0) for 1SEND_B0>0 "
              "(action 7 of 12, edge 0) of rank 1; rank 1 waits at 1RECV_F2<0 (action 4 of 12, edge 0) for 0SEND_F2>1 "
              "(action 7 of 12, edge 0) of rank 0; change the order of these ranks' actions");
}

TEST(CheckEnds, TwoSwappedActionsCanBeEnough) {
    Schedule schedule = lower(make_schedule("1F1B", 2, 1, 2), chain_edges(2));
    // 0RECV_B0 in front of the last send that rank 1 needs for nothing but F1: still ends.
    swap(schedule, 0, "0RECV_B0<1", "0SEND_F1>1");
    EXPECT_NO_THROW(check_schedule(schedule, chain_edges(2)));
    // In front of the first send: nobody can go on.
    swap(schedule, 0, "0RECV_B0<1", "0SEND_F0>1");
    EXPECT_CONTAINS(problem(schedule), "rank 0 waits at 0RECV_B0<1");
    EXPECT_CONTAINS(problem(schedule), "rank 1 waits at 1RECV_F0<0");
}

TEST(CheckEnds, AGradientCanCloseTheCircle) {
    // Without a gradient rank 0 may go back at once; with one it waits for rank 1, which waits for F1.
    Schedule schedule = make_schedule("GPIPE", 2, 1, 2);
    schedule.actions[0] = {{F, 0, 0}, {B, 0, 0}, {F, 0, 1}, {B, 0, 1}};
    EXPECT_NO_THROW(check_schedule(lower(schedule, {{0, 0, 1, false, 0}}), {{0, 0, 1, false, 0}}));
    EXPECT_CONTAINS(problem(lower(schedule, chain_edges(2))), "it never ends");
}

// The obvious way to end interleaved 1F1B, a shorter last group, is what the checker must catch: P = 4, v = 3, M = 5.
TEST(CheckEnds, AShortLastGroupOfInterleavedDeadlocks) {
    const int P = 4, v = 3, M = 5;
    std::vector<std::pair<int, int>> walk;  // (local stage, microbatch)
    for (int group = 0; group < M; group += P) {
        for (int local = 0; local < v; ++local) {
            for (int i = group; i < std::min(group + P, M); ++i) walk.emplace_back(local, i);
        }
    }
    Schedule schedule = make_schedule("INTERLEAVED_1F1B", P, v, M);
    const size_t num_steps = walk.size();
    for (int rank = 0; rank < P; ++rank) {
        std::vector<Action> list;
        const size_t warmup = std::min(static_cast<size_t>(2 * (P - 1 - rank) + (v - 1) * P), num_steps);
        for (size_t k = 0; k < num_steps + warmup; ++k) {
            if (k < num_steps) list.push_back({F, walk[k].first * P + rank, walk[k].second});
            if (k < warmup) continue;
            const auto& [local, microbatch] = walk[k - warmup];
            list.push_back({B, (v - 1 - local) * P + rank, microbatch});
        }
        schedule.actions[static_cast<size_t>(rank)] = std::move(list);
    }
    EXPECT_CONTAINS(problem(lower(schedule, chain_edges(P * v)), chain_edges(P * v)), "it never ends");
}

TEST(CheckEnds, OnlyRanksOfTheCircleAreNamed) {
    Schedule schedule = lower(make_schedule("GPIPE", 40, 1, 1), chain_edges(40));
    std::vector<Action>& first = schedule.actions[0];
    std::rotate(first.begin(), first.begin() + 2, first.begin() + 3);  // the receive of the gradient in front of all
    const std::string text = problem(schedule, chain_edges(40));
    EXPECT_CONTAINS(text, "rank 0 waits at 0RECV_B0<1");
    EXPECT_CONTAINS(text, "; rank 1 waits at 1RECV_F0<0");
    EXPECT_CONTAINS(text, "; 38 more ranks wait; change");
    EXPECT_EQ(text.find("rank 2 waits"), std::string::npos);
}

TEST(CheckEnds, LongCirclesAreCut) {
    std::vector<ScheduleEdge> edges = chain_edges(40);
    edges.push_back({39, 0, 39, true, 0});
    Schedule schedule = lower(make_schedule("GPIPE", 40, 1, 1), edges);
    std::vector<Action>& first = schedule.actions[0];
    ASSERT_EQ(to_text(first), "0F0 0SEND_F0>1 0SEND_F0>39 0RECV_B0<1 0RECV_B0<39 0B0");
    std::rotate(first.begin(), first.begin() + 4, first.begin() + 5);  // the one from rank 39 in front of all
    const std::string text = problem(schedule, edges);
    EXPECT_CONTAINS(text, "rank 0 waits at 0RECV_B0<39");
    EXPECT_CONTAINS(text, "; and so on round a circle of 40 ranks; change");
    EXPECT_EQ(text.find("more ranks wait"), std::string::npos);
}

// What is asked for

TEST(CheckOptions, OrderedChannelsRefuseMessagesThatCross) {
    Schedule schedule = lower(make_schedule("GPIPE", 2, 1, 2), chain_edges(2));
    ASSERT_EQ(to_text(schedule.actions[1]).substr(0, 28), "1RECV_F0<0 1F0 1RECV_F1<0 1F");
    std::vector<Action>& list = schedule.actions[1];
    std::rotate(list.begin(), list.begin() + 2, list.begin() + 3);  // RECV_F1 in front of RECV_F0
    EXPECT_NO_THROW(check_schedule(schedule, chain_edges(2)));
    EXPECT_EQ(
        error_text(ErrorKind::Plan, [&] { check_schedule(schedule, chain_edges(2), {.ordered_channels = true}); }),
        "schedule GPIPE: messages cross: rank 1 receives 1RECV_F1<0 (action 0 of 8, edge 0) where rank 0 sends "
        "0SEND_F0>1 (action 1 of 8, edge 0); a channel that keeps the order needs both in the same order");
}

// 1F1B as it is lowered by default: rank 0 sends F1 while rank 1 sends B0, and nobody receives.
TEST(CheckOptions, RendezvousFindsSendsThatWaitForEachOther) {
    EXPECT_NO_THROW(check_schedule(good(), chain_edges(2), {.ordered_channels = true}));
    EXPECT_CONTAINS(
        error_text(ErrorKind::Plan, [&] { check_schedule(good(), chain_edges(2), {.rendezvous = true}); }),
        "it never ends where a send waits for its receive: rank 0 waits at 0SEND_F1>1 (action 3 of 12, edge 0) for "
        "1RECV_F1<0 (action 4 of 12, edge 0) of rank 1; rank 1 waits at 1SEND_B0>0 (action 3 of 12, edge 0) for "
        "0RECV_B0<1 (action 4 of 12, edge 0) of rank 0; change");
    // GPipe: all values go before any gradient.
    const Schedule gpipe = lower(make_schedule("GPIPE", 3, 1, 4), chain_edges(3));
    EXPECT_NO_THROW(check_schedule(gpipe, chain_edges(3), {.ordered_channels = true, .rendezvous = true}));
}

TEST(CheckOptions, EveryStageReduces) {
    Schedule schedule{"X", 1, 1, {0, 0}, {{{F, 0, 0}, {F, 1, 0}, {B, 1, 0}, {ReduceGrad, 1}, {B, 0, 0}}}};
    EXPECT_NO_THROW(check_schedule(schedule, {}));
    EXPECT_CONTAINS(error_text(ErrorKind::Plan, [&] { check_schedule(schedule, {}, {.reduces = true}); }),
                    "0REDUCE_GRAD is missing");
    schedule.actions[0].push_back({ReduceGrad, 0});
    EXPECT_NO_THROW(check_schedule(schedule, {}, {.reduces = true}));
}

// Pairs

Action pair(Action action) {
    action.paired = true;
    return action;
}

TEST(CheckPairs, AForwardBesideABackwardIsGood) {
    const auto passes = [](const std::vector<Action>& list) { check_schedule({"X", 1, 2, {0}, {list}}, {}); };
    EXPECT_NO_THROW(passes({{F, 0, 0}, pair({F, 0, 1}), {B, 0, 0}, {B, 0, 1}}));
    EXPECT_NO_THROW(passes({{F, 0, 0}, pair({B, 0, 0}), {F, 0, 1}, {B, 0, 1}}));
    EXPECT_NO_THROW(passes({{F, 0, 0}, pair({F, 0, 1}), {I, 0, 0}, {W, 0, 0}, {B, 0, 1}}));
}

TEST(CheckPairs, OthersAreRefused) {
    const auto refused = [](const std::vector<Action>& list) { return problem({"X", 1, 2, {0}, {list}}, {}); };
    EXPECT_CONTAINS(refused({{F, 0, 0}, {F, 0, 1}, {B, 0, 0}, pair({B, 0, 1})}),
                    "0B1& (action 3 of rank 0) begins a pair without a second action");
    EXPECT_CONTAINS(refused({pair({F, 0, 0}), {F, 0, 1}, {B, 0, 0}, {B, 0, 1}}),
                    "begins a pair with 0F1 (expected an F beside a B or I)");
    EXPECT_CONTAINS(refused({{F, 0, 0}, {F, 0, 1}, pair({B, 0, 0}), {B, 0, 1}}), "begins a pair with 0B1 (expected");
    EXPECT_CONTAINS(refused({{F, 0, 0}, {I, 0, 0}, pair({W, 0, 0}), {F, 0, 1}, {B, 0, 1}}), "but is no F, B or I");
    EXPECT_CONTAINS(refused({{F, 0, 0}, {I, 0, 0}, pair({F, 0, 1}), {W, 0, 0}, {B, 0, 1}}), "begins a pair with 0W0");
    EXPECT_CONTAINS(refused({{F, 0, 0}, pair({F, 0, 1}), pair({B, 0, 0}), {B, 0, 1}}), "which begins a pair itself");
    EXPECT_CONTAINS(refused({{F, 0, 0}, {B, 0, 0}, pair({F, 0, 1}), {B, 0, 1}}),
                    "begins a pair with 0B1, which needs its result; they run together");
}

TEST(CheckPairs, TransfersStandOutsideThePair) {
    Schedule compute{
        "X",
        2,
        2,
        {0, 1},
        {{{F, 0, 0}, {F, 0, 1}, {B, 0, 0}, {B, 0, 1}}, {{F, 1, 0}, pair({F, 1, 1}), {B, 1, 0}, {B, 1, 1}}}};
    const Schedule lowered = lower(compute, chain_edges(2));
    EXPECT_EQ(to_text(lowered.actions[1]), "1RECV_F0<0 1F0 1RECV_F1<0 1F1& 1B0 1SEND_B0>0 1B1 1SEND_B1>0");
    EXPECT_NO_THROW(check_schedule(lowered, chain_edges(2)));
    Schedule torn = lowered;
    std::swap(torn.actions[1][4], torn.actions[1][5]);
    EXPECT_CONTAINS(problem(torn), "begins a pair with 1SEND_B0>0");
    Schedule transfer = lowered;
    transfer.actions[1][2].paired = true;
    EXPECT_CONTAINS(problem(transfer), "1RECV_F1&<0 (action 2 of rank 1) begins a pair but is no F, B or I");
}

// Every single removal, duplication or misdirection in a good schedule is caught.
TEST(CheckSchedule, NoSingleFaultPasses) {
    const Schedule whole = lower(make_schedule("INTERLEAVED_1F1B", 2, 2, 3), chain_edges(4));
    const auto refused = [](const Schedule& schedule) {
        try {
            check_schedule(schedule, chain_edges(4));
            return false;
        } catch (const Error& error) {
            return error.kind() == ErrorKind::Plan;
        }
    };
    ASSERT_FALSE(refused(whole));
    for (size_t rank = 0; rank < 2; ++rank) {
        for (size_t k = 0; k < whole.actions[rank].size(); ++k) {
            const auto place = static_cast<std::ptrdiff_t>(k);
            Schedule broken = whole;
            broken.actions[rank].erase(broken.actions[rank].begin() + place);
            EXPECT_TRUE(refused(broken)) << "without " << to_text(whole.actions[rank][k]);
            broken = whole;
            broken.actions[rank].push_back(whole.actions[rank][k]);
            EXPECT_TRUE(refused(broken)) << "twice " << to_text(whole.actions[rank][k]);
            broken = whole;
            ++broken.actions[rank][k].microbatch;
            EXPECT_TRUE(refused(broken)) << "another microbatch for " << to_text(whole.actions[rank][k]);
            broken = whole;
            ++broken.actions[rank][k].stage;
            EXPECT_TRUE(refused(broken)) << "another stage for " << to_text(whole.actions[rank][k]);
            if (!is_transfer(whole.actions[rank][k].kind)) continue;
            broken = whole;
            ++broken.actions[rank][k].edge;
            EXPECT_TRUE(refused(broken)) << "another edge for " << to_text(whole.actions[rank][k]);
            broken = whole;
            broken.actions[rank][k].peer = static_cast<int>(rank);
            EXPECT_TRUE(refused(broken)) << "another peer for " << to_text(whole.actions[rank][k]);
        }
    }
}

/// Whether every action finds what it needs when each rank does its list in order: said a second time, from the edges
/// and with sets, for schedules whose actions are complete. The order of forwards is not looked at.
bool runs(const Schedule& schedule, const std::vector<ScheduleEdge>& edges) {
    std::set<Action> done;
    const auto rank_of = [&](int stage) { return schedule.rank_of_stage[static_cast<size_t>(stage)]; };
    const auto ready = [&](const Action& action) {
        const int i = action.microbatch;
        if (action.kind == B && !done.contains({F, action.stage, i})) return false;
        for (const ScheduleEdge& edge : edges) {
            const bool forward = action.kind == F || action.kind == SendF || action.kind == RecvF;
            if (!forward && !edge.has_gradient) continue;
            const int from = forward ? edge.producer : edge.consumer, to = forward ? edge.consumer : edge.gradient_to;
            const ActionKind compute = forward ? F : B, receive = forward ? RecvF : RecvB,
                             send = forward ? SendF : SendB;
            const bool here = rank_of(from) == rank_of(to);
            if (is_send(action.kind) && edge.id == action.edge && !done.contains({compute, from, i})) return false;
            if (is_receive(action.kind) && edge.id == action.edge &&
                !done.contains({send, from, i, edge.id, rank_of(to)})) {
                return false;
            }
            if (action.kind != compute || action.stage != to) continue;
            if (!done.contains(here ? Action{compute, from, i} : Action{receive, to, i, edge.id, rank_of(from)})) {
                return false;
            }
        }
        return true;
    };
    std::vector<size_t> next(schedule.actions.size(), 0);
    for (bool progress = true; progress;) {
        progress = false;
        for (size_t rank = 0; rank < next.size(); ++rank) {
            const std::vector<Action>& list = schedule.actions[rank];
            for (; next[rank] < list.size() && ready(list[next[rank]]); progress = true)
                done.insert(list[next[rank]++]);
        }
    }
    for (size_t rank = 0; rank < next.size(); ++rank) {
        if (next[rank] < schedule.actions[rank].size()) return false;
    }
    return true;
}

bool forwards_ascend(const Schedule& schedule) {
    std::vector<int> last(schedule.rank_of_stage.size(), -1);
    for (const std::vector<Action>& list : schedule.actions) {
        for (const Action& action : list) {
            if (action.kind != F) continue;
            int& before = last[static_cast<size_t>(action.stage)];
            if (action.microbatch < before) return false;
            before = action.microbatch;
        }
    }
    return true;
}

TEST(CheckSchedule, AgreesWithASecondOpinionOnSwappedActions) {
    uint64_t key = 11;
    const auto draw = [&](size_t bound) { return (key = mix64(key)) % bound; };
    int num_passed = 0, num_refused = 0;
    for (int trial = 0; trial < 1500; ++trial) {
        const bool interleaved = trial % 2 == 0;
        const std::vector<ScheduleEdge> edges = testing::random_edges(interleaved ? 4 : 3, key);
        Schedule schedule =
            lower(interleaved ? make_schedule("INTERLEAVED_1F1B", 2, 2, 3) : make_schedule("1F1B", 3, 1, 3), edges);
        std::vector<Action>& list = schedule.actions[draw(schedule.actions.size())];
        const size_t one = draw(list.size());
        std::swap(list[one], list[std::min(one + 1 + draw(4), list.size() - 1)]);
        bool passed = true;
        try {
            check_schedule(schedule, edges);
        } catch (const Error&) {
            passed = false;
        }
        ASSERT_EQ(passed, runs(schedule, edges) && forwards_ascend(schedule)) << to_text(list);
        ++(passed ? num_passed : num_refused);
    }
    EXPECT_GT(num_passed, 100);
    EXPECT_GT(num_refused, 100);
}

}  // namespace
}  // namespace vpp
