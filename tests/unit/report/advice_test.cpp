// Every rule of the advice speaks where it should, with its numbers, and is silent where it should not.
#include "report/advice.hpp"

#include <gmock/gmock.h>

#include "unit/report/inspections.hpp"

namespace vpp {
namespace {

using ::testing::HasSubstr;

/// What a rule says; empty when it is silent.
std::string said(const Inspection& page, const std::string& rule) {
    std::string text;
    for (const Advice& advice : advise(page)) {
        if (advice.rule == rule) text += advice.text + "\n";
    }
    return text;
}

/// Nothing to complain about.
Inspection good_page() {
    Inspection page = test::two_stages();
    page.bubble = 0.05;
    page.more_microbatches.clear();
    for (InspectedRank& rank : page.ranks) rank.load = 1;
    page.even_makespan = page.makespan;
    return page;
}

TEST(Advice, AGoodPlanGetsNone) {
    EXPECT_TRUE(advise(good_page()).empty());
}

TEST(Advice, RulesHaveDifferentNames) {
    std::vector<std::string> names = advice_rules();
    std::sort(names.begin(), names.end());
    EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

TEST(Advice, UnevenRanksNameTheBusiestAndTheGain) {
    Inspection page = test::two_stages();
    EXPECT_EQ(said(page, "uneven_ranks"),
              "rank 1 (stage 1) has 1.33 times the work of a mean rank, and every microbatch waits for it: with even "
              "stages a step would take 18.5 % less; try pipeline.split_method = \"FLOPS\"\n");
    page.split_method = "FLOPS";
    EXPECT_THAT(said(page, "uneven_ranks"), HasSubstr("virtual_chunks = 2"));
    page.split_method = "AUTO";
    EXPECT_THAT(said(page, "uneven_ranks"),
                HasSubstr("no cut is better; smaller units or more stages a rank may help"));
    page.even_makespan = page.makespan;  // evenness would not help this schedule
    EXPECT_EQ(said(page, "uneven_ranks"), "");
}

TEST(Advice, ADividedBackwardThatCannotPayIsSaid) {
    Inspection page = good_page();
    page.schedule.name = "ZERO_BUBBLE_H1";
    page.cost_unit = "ms";
    page.makespan = 27;
    page.halves_over_whole = 1.25;
    EXPECT_EQ(said(page, "divided_backward"), "") << "nothing was measured";
    page.undivided_makespan = 26;
    EXPECT_EQ(said(page, "divided_backward"),
              "ZERO_BUBBLE_H1 cannot pay here: by measured costs a step takes 27.000 ms with it and 26.000 ms with "
              "1F1B, as I and W together take 1.25 times what B does; set schedule_type = \"1F1B\", or \"AUTO\", which "
              "chooses by the same costs; the same bits\n");
    page.undivided_makespan = 27.1;
    EXPECT_THAT(said(page, "divided_backward"), HasSubstr("hardly pays"));
    page.undivided_makespan = 30;
    EXPECT_EQ(said(page, "divided_backward"), "") << "it pays";
}

TEST(Advice, MoreMicrobatchesComeWithTheirNumber) {
    Inspection page = test::two_stages();
    page.more_microbatches = {{8, 0.2}, {16, 0.09}, {32, 0.05}};
    EXPECT_EQ(said(page, "more_microbatches"),
              "the bubble is 32.5 % with 4 microbatches; with 16 it would be 9.0 %: set pipeline.num_microbatches = 16 "
              "(of 1 sample); other bits, as sums are formed of other parts\n")
        << "the first that is small enough";
    page.samples = 12;
    EXPECT_THAT(said(page, "more_microbatches"),
                HasSubstr("pipeline.num_microbatches = 16 with train.global_batch_size = 64"));
    page.more_microbatches = {{8, 0.32}};  // hardly better
    EXPECT_EQ(said(page, "more_microbatches"), "");
}

TEST(Advice, SeveralPipelineRunsMayBeOne) {
    Inspection page = test::two_stages();
    page.more_microbatches = {{8, 0.2}};
    EXPECT_EQ(said(page, "one_pipeline_run"), "");
    page.accumulate = 2;
    EXPECT_EQ(said(page, "one_pipeline_run"),
              "the bubble is 32.5 % in 2 pipeline runs a step; in one run it would be 20.0 %: set "
              "pipeline.num_microbatches = 8 and train.accumulate = 1; the same bits\n");
    EXPECT_EQ(said(page, "more_microbatches"), "");
    page.more_microbatches = {{8, 0.32}};  // hardly better
    EXPECT_EQ(said(page, "one_pipeline_run"), "");
}

TEST(Advice, AHeavyCutNamesTheLighterOne) {
    Inspection page = good_page();
    page.cuts[0] = {28, 640 * 1024, 31, 128 * 1024, 1.02, "blocks.2", 0.01};
    EXPECT_THAT(said(page, "heavy_cut"),
                HasSubstr("the cut between stages 0 and 1 carries 640.0 KiB a microbatch; a cut after op 30 (of "
                          "'blocks.2') would carry 128.0 KiB, with the larger of both stages at 1.02 times"));
    EXPECT_THAT(said(page, "heavy_cut"), HasSubstr("(smallest_unsplittable_units) can put it there"));
    page.split_method = "MANUAL_EAGER";
    EXPECT_THAT(said(page, "heavy_cut"), HasSubstr("its FLOPs: other stages can put it there"));
    page.cuts[0].better_bytes = 500 * 1024;
    EXPECT_EQ(said(page, "heavy_cut"), "");
}

TEST(Advice, LongTransfersAreSaidOnce) {
    Inspection page = good_page();
    page.cuts[0].transfer_share = 0.4;
    EXPECT_THAT(said(page, "long_transfer"), HasSubstr("from stage 0 to 1 takes 40.0 % of a mean forward"));
    page.cuts.clear();
    EXPECT_EQ(said(page, "long_transfer"), "");
}

TEST(Advice, IdleCoresAndTooFew) {
    Inspection page = good_page();
    page.num_ranks = page.pp = 4;
    page.machine.cores = 64;
    EXPECT_EQ(said(page, "idle_cores"),
              "4 ranks use 4 of 64 cores on this machine; mesh.threads = 16 would use all, with other bits (sums are "
              "formed in another order)\n");
    page.machine.cores = 66;
    EXPECT_THAT(said(page, "idle_cores"), HasSubstr("mesh.threads = 16 would use 64"));
    page.machine.cores = 7;
    EXPECT_EQ(said(page, "idle_cores"), "") << "no rank could have two";
    page.machine.cores = 2;
    EXPECT_THAT(said(page, "oversubscription"),
                HasSubstr("4 ranks of 1 thread want 4 cores, this machine has 2: on it alone a step takes at least "
                          "2.00 times"));
    page.machine.cores = 4;
    EXPECT_TRUE(advise(page).empty());
    page.machine.cores = 0;
    EXPECT_TRUE(advise(page).empty()) << "not known";
}

TEST(Advice, RecomputeIsAdvisedWhereItWouldFit) {
    Inspection page = good_page();
    page.machine.memory_bytes = 250'000;  // of 300,000 that are wanted, 150,000 with recompute
    EXPECT_THAT(said(page, "memory"), HasSubstr("pipeline.recompute.what = \"stage\" would fit with 146.5 KiB"));
    page.machine.memory_bytes = 100'000;
    EXPECT_THAT(said(page, "memory"), HasSubstr("it takes more machines"));
    page.machine.memory_bytes = 0;
    EXPECT_EQ(said(page, "memory"), "");
}

TEST(Advice, WhereCardsComputeTheirMemoryCountsAndNotTheHosts) {
    Inspection page = good_page();
    page.machine.memory_bytes = 100'000;
    page.machine.cores = 1;
    page.cards = {{"card", 1 << 20, 1, 1 << 19}, {"card", 1 << 20, 1, 1 << 21}};
    EXPECT_EQ(said(page, "card_memory"),
              "1 rank may want 2.0 MiB on card 1, which has 1.0 MiB: it takes more cards or more stages, smaller "
              "microbatches, or pipeline.recompute.what = \"stage\"\n");
    page.recomputes = true;
    page.cards[1].num_ranks = 3;
    EXPECT_EQ(said(page, "card_memory"),
              "3 ranks may want 2.0 MiB on card 1, which has 1.0 MiB: it takes more cards or more stages, smaller "
              "microbatches\n");
    page.cards[1] = {"card", 1 << 20, 2, 1 << 19, 1 << 20};
    EXPECT_EQ(said(page, "card_memory"),
              "with recordings of their ops 2 ranks may want 1.0 MiB on card 1, which has 1.0 MiB: where these find no "
              "room, ops run one by one, which is slower\n");
    page.cards.pop_back();
    EXPECT_TRUE(advise(page).empty()) << "what lies on cards is none of the host's memory, and its cores do not count";
}

TEST(Advice, BesideCardsTheHostHoldsCopiesForSaves) {
    Inspection page = good_page();
    page.cards = {{"card", 1 << 30, 1, 1 << 19}, {"card", 1 << 30, 1, 1 << 19}};
    page.machine.memory_bytes = 1 << 20;
    page.ranks[0].saved_copy_bytes = 400'000;
    page.ranks[1].saved_copy_bytes = 300'000;
    EXPECT_EQ(said(page, "host_memory"), "");
    page.ranks[1].input_bytes = 700'000;
    EXPECT_EQ(
        said(page, "host_memory"),
        "beside their cards all ranks together may want 1.3 MiB for data that are read ahead and for saves in the "
        "background, this machine has 1.0 MiB: checkpoint.background = false saves 683.6 KiB, "
        "data.read_ahead_bytes bounds the data\n");
    page.cards.clear();
    EXPECT_EQ(said(page, "host_memory"), "") << "of the CPU all is counted together";
}

TEST(Advice, OpsThatRunOnTheHostAreNamed) {
    Inspection page = good_page();
    EXPECT_EQ(said(page, "card_kernels"), "");
    page.host_ops = {{"aten::ctc_loss", "loss", false}, {"aten::_upsample_bilinear2d_aa", "net.up", true}};
    EXPECT_EQ(said(page, "card_kernels"),
              "aten::ctc_loss in 'loss' runs on the host, since cards have no kernel for it that gives the same bits "
              "every time: its card waits, so another op may be faster\n"
              "aten::_upsample_bilinear2d_aa in 'net.up' runs on the host in its backward pass, since cards have no "
              "kernel for it that gives the same bits every time: its card waits, so another op may be faster\n");
}

TEST(Advice, FarTiesNameTheirTraffic) {
    Inspection page = good_page();
    page.edges.push_back({1, "in.weight", "", 0, 1, true, 0, 2048, 8192, false});
    EXPECT_THAT(said(page, "far_tie"),
                HasSubstr("'in.weight' is owned by stage 0 and used by stage 1: its gradient of 2.0 KiB travels for "
                          "every microbatch, 8.0 KiB a step"));
    page.edges.back().per_step = true;
    EXPECT_EQ(said(page, "far_tie"), "");
}

TEST(Advice, GpipeHoldsMoreThanItMust) {
    Inspection page = good_page();
    page.schedule.name = "GPIPE";
    EXPECT_THAT(said(page, "all_held"),
                HasSubstr("of all 4 microbatches, schedule_type = \"1F1B\" those of at most 2"));
    page.schedule.num_microbatches = 2;
    EXPECT_EQ(said(page, "all_held"), "");
}

TEST(Advice, Zero1IsAdvisedForLargeStates) {
    Inspection page = good_page();
    page.dp = 2;
    page.ranks[0].unshared_optimizer_bytes = 100'000;
    page.ranks[0].zero1_optimizer_bytes = 50'000;
    EXPECT_THAT(said(page, "zero1"), HasSubstr("would save up to 48.8 KiB of 195.3 KiB on a rank"));
    page.zero1 = true;
    EXPECT_EQ(said(page, "zero1"), "");
}

}  // namespace
}  // namespace vpp
