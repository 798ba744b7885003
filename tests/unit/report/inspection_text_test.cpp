#include "report/inspection_text.hpp"

#include <gmock/gmock.h>

#include <sstream>

#include "unit/report/inspections.hpp"

namespace vpp {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

size_t widest_line(const std::string& text) {
    std::istringstream lines(text);
    size_t widest = 0;
    for (std::string line; std::getline(lines, line);) widest = std::max(widest, line.size());
    return widest;
}

/// The text without its escapes, each of which ends with an 'm'.
std::string without_colour(std::string text) {
    for (size_t begin; (begin = text.find('\x1b')) != std::string::npos;) {
        text.erase(begin, text.find('m', begin) - begin + 1);
    }
    return text;
}

TEST(InspectionText, WhereManyCutsAreRefusedOneReasonIsGiven) {
    Inspection page = test::two_stages();
    page.legal_cuts = 9;
    page.commonest_refusal = {"the list 'a' is changed in place", 28};
    const std::string text = inspection_text(page, {200, false});
    EXPECT_NE(text.find("30 refused (76.9 %), 28 of them since the list 'a' is changed in place\n"), std::string::npos)
        << text;
}

TEST(InspectionText, IsAPage) {
    EXPECT_EQ(inspection_text(test::two_stages(), {100, false}), R"(model     model.pt
          40 ops, 3000 parameters (11.7 KiB), buffers 0 B
          cuts: 38 of 39 positions are legal, 1 refused (2.6 %)
data      synthetic, 64 samples
mesh      PP 2 x DP 1 x TP 1, 2 ranks
start     mpirun -np 2 vpp train --config plan.toml
step      16 samples = 4 microbatches of 4
schedule  1F1B, 2 stages, bubble 20.0 % (F = 1, B = 2, free transfers)
costs     FLOPs; a byte sent counts 10
          bubble 32.5 %, a step takes 27.000 x F of a mean rank
          critical path: stage 1 75.0 %, stage 0 12.5 %, messages 12.5 %
digest    00112233445566778899aabbccddeeff

|            0 33.3 %            |                            1 66.7 %                             |

stage  submodule       class       ops  params   weights  FLOPs F      %
 0-1   model           Net          40   3.0 K  11.7 KiB    3.0 M  100.0
 0       in            Linear        4     300   1.2 KiB  100.0 K    3.3
 0-1     blocks        ModuleList   30   2.4 K   9.4 KiB    2.7 M   90.0
 0         0..1        Block x 2    20   1.6 K   6.2 KiB    1.8 M   60.0
 0-1       2           Block        10     800   3.1 KiB  900.0 K   30.0
 0           up        Linear        4     400   1.6 KiB  400.0 K   13.3
 1           down      Linear        4     400   1.6 KiB  400.0 K   13.3
 1           (itself)                2       0       0 B  100.0 K    3.3
 1       head          Linear        6     300   1.2 KiB  200.0 K    6.7
every op, parameter and buffer is in exactly one stage

stage  rank    ops  units  parameters  FLOPs F     %  time %  submodules
 0        0   0-27    2+1        2300    1.0 M  33.3    33.3  in .. blocks.2
 1        1  28-39    0+1         700    2.0 M  66.7    66.7  blocks.2, head
units: whole + cut ones; FLOPs of one microbatch; time %: of the computing of a step

stage  rank  weights  gradients  optimizer  buffers  activations  receives
 0        0  9.0 KiB    9.0 KiB   18.0 KiB      0 B     64.0 KiB   4.0 KiB
 1        1  2.7 KiB    2.7 KiB    5.5 KiB      8 B     32.0 KiB   4.0 KiB
activations and receives: of one microbatch

rank  stages  weights  gradients  optimizer  buffers  in flight <=  messages  save copy      total
0      0      9.0 KiB    9.0 KiB   18.0 KiB      0 B     128.0 KiB   8.0 KiB   27.0 KiB  195.3 KiB
1      1      2.7 KiB    2.7 KiB    5.5 KiB      8 B      32.0 KiB   8.0 KiB    8.2 KiB   97.7 KiB
bytes of a rank at its fullest moment; in its total up to 2.0 KiB of data that are read ahead

rank  stages  held  load  busy %                          sent a step
0      0         2  0.67    45.0  |#########...........|     16.0 KiB
1      1         1  1.33    90.0  |##################..|     16.0 KiB
held: stage activations at once, at most; load: over a mean rank; busy: of a step

edge  from -> to    bytes  gradient    a step  value
   0  0 -> 1      4.0 KiB  to 0      32.0 KiB  x.6 float32[4, 256]
bytes of one microbatch; a step: both ways, all microbatches, between ranks

sends a step      to 0      to 1
rank 0               .  16.0 KiB
rank 1        16.0 KiB         .

1F1B: 2 ranks, 2 stages, 4 microbatches
0 |F0 F1 .. .. B0 -- F2 B1 -- F3 B2 -- .. B3 --
1 |.. F0 B0 -- F1 B1 -- F2 B2 -- F3 B3 -- .. ..
F forward  B backward  I, W its halves
-- goes on  .. idle  one column = 1.00
makespan 15.00, bubble 20.0 %
span 15.00, bubble 20.0 %
activations in flight: 2 1

advice
- rank 1 (stage 1) has 1.33 times the work of a mean rank, and every microbatch waits for it: with
  even stages a step would take 18.5 % less; try pipeline.split_method = "FLOPS"
- the bubble is 32.5 % with 4 microbatches; with 16 it would be 27.0 %: set
  pipeline.num_microbatches = 16 (of 1 sample); other bits, as sums are formed of other parts
)");
}

TEST(InspectionText, TheLineToStartItHasTheSettingsAndIsOneForAShell) {
    Inspection page = test::two_stages();
    page.plan_file = "my plan\x1b.toml";
    page.settings = {"train.steps=7", "run.dir=it's"};
    EXPECT_THAT(inspection_text(page, {100, false}),
                HasSubstr("\nstart     mpirun -np 2 vpp train --config 'my plan?.toml' --set train.steps=7 "
                          "--set 'run.dir=it'\\''s'\n"));
}

TEST(InspectionText, FitsEveryWidth) {
    for (int width = 60; width <= 140; width += 4) {
        EXPECT_LE(widest_line(inspection_text(test::two_stages(), {width, false})), static_cast<size_t>(width));
    }
}

TEST(InspectionText, ColourRepeatsWhatTheTextSays) {
    const std::string coloured = inspection_text(test::two_stages(), {100, true});
    EXPECT_THAT(coloured, HasSubstr("\x1b[30;48;5;117m 0 \x1b[0m"));
    EXPECT_EQ(without_colour(coloured), inspection_text(test::two_stages(), {100, false}));
}

TEST(InspectionText, ReplicasAndTiesHaveTheirLines) {
    Inspection page = test::two_stages();
    EXPECT_THAT(inspection_text(page, {}), Not(HasSubstr("sent to replicas")));
    page.dp = 2;
    page.ranks[0].ranks = {0, 1};
    page.num_ties = 1;
    page.exact_ties = false;
    page.recompute_text = "1 of 2 segments";
    const std::string text = inspection_text(page, {});
    EXPECT_THAT(text, HasSubstr("sent to replicas a step"));
    EXPECT_THAT(text, HasSubstr("tied      1 copy of parameters in later stages; gradients are summed once per step"));
    EXPECT_THAT(text, HasSubstr("recompute 1 of 2 segments\n"));
}

TEST(InspectionText, TheSamplesOfAStepArePartedAmongReplicasToo) {
    Inspection page = test::two_stages();
    page.dp = 2;
    page.samples = 32;
    EXPECT_THAT(inspection_text(page, {100, false}),
                HasSubstr("\nstep      32 samples = 2 replicas x 4 microbatches of 4\n"));
}

TEST(InspectionText, CopiesInHalfPrecisionHaveAColumnWhereThereAreSome) {
    Inspection page = test::two_stages();
    EXPECT_THAT(inspection_text(page, {}), Not(HasSubstr("casts")));
    page.ranks[0].cast_bytes = 4600;
    const std::string text = inspection_text(page, {});
    EXPECT_THAT(text, HasSubstr("buffers    casts  in flight <="));
    EXPECT_THAT(text, HasSubstr("4.5 KiB"));
    EXPECT_THAT(text, HasSubstr("casts: of weights"));
}

TEST(InspectionText, CardsHaveALineAndATable) {
    Inspection page = test::two_stages();
    page.transport = "auto";
    page.cards = {{"NVIDIA H200", int64_t{1} << 37, 2, int64_t{1} << 36, int64_t{3} << 35}};
    const std::string shared = inspection_text(page, {120, false});
    EXPECT_THAT(shared, HasSubstr("cards     1 GPU here (NVIDIA H200, 128.0 GiB); ranks share cards: values go through "
                                  "the host's memory, by MPI\n"));
    EXPECT_THAT(shared, HasSubstr("card               ranks  keeps <=  recorded     memory  full %\n"
                                  "   0  NVIDIA H200      2  64.0 GiB  96.0 GiB  128.0 GiB    50.0  "
                                  "|##########..........|\n"
                                  "if all ranks run on this machine, taking its cards in turn; beside what CUDA and "
                                  "NCCL take for themselves; "));
    page.cards.push_back(page.cards.front());
    EXPECT_THAT(inspection_text(page, {120, false}),
                HasSubstr("2 GPUs here (NVIDIA H200, 128.0 GiB); a card for each rank: values go from card to card, by "
                          "NCCL\n"));
    page.transport = "mpi";
    EXPECT_THAT(inspection_text(page, {120, false}), HasSubstr("a card for each rank: values go through the host's"));
    page.machine.mpi_moves_card_memory = true;
    EXPECT_THAT(inspection_text(page, {120, false}), HasSubstr(": values go from card to card, by MPI"));
    EXPECT_THAT(inspection_text(test::two_stages(), {120, false}), Not(HasSubstr("card")));
}

TEST(InspectionText, ManyRanksGetAListOfThoseThatTalk) {
    Inspection page = test::two_stages();
    for (int rank = 2; rank < 9; ++rank) {
        page.ranks.push_back(page.ranks[1]);
        page.ranks.back().ranks = {rank};
    }
    const std::string text = inspection_text(page, {});
    EXPECT_THAT(text, Not(HasSubstr("sends a step")));
    EXPECT_THAT(text, HasSubstr("rank  sends to  forward a step  backward a step  messages\n"
                                "   0  1               16.0 KiB              0 B         4\n"));
}

TEST(InspectionText, LongTreesAreCutOffAndSaid) {
    Inspection page = test::two_stages();
    page.modules.resize(300, page.modules.back());
    EXPECT_THAT(inspection_text(page, {}), HasSubstr("... 180 more rows"));
}

TEST(StageStrip, StagesAreAsWideAsTheirTime) {
    EXPECT_EQ(stage_strip(test::two_stages(), {43, false}), "|  0 33.3 %   |         1 66.7 %          |\n");
    Inspection page = test::two_stages();
    page.stages.resize(40, page.stages[0]);
    EXPECT_EQ(stage_strip(page, {80, false}), "40 stages\n") << "no room";
}

}  // namespace
}  // namespace vpp
