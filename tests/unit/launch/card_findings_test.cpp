#include "launch/card_findings.hpp"

#include <gtest/gtest.h>

namespace vpp {
namespace {

using enum FindingLevel;

constexpr int64_t kCardGiB = int64_t{1} << 30;

void expect_of_cards(const Finding& found, FindingLevel level, const std::string& text,
                     const std::string& remedy = "") {
    EXPECT_EQ(found.level, level);
    EXPECT_EQ(found.text, text);
    EXPECT_EQ(found.remedy, remedy);
}

LaunchRequest job_of(int num_ranks) {
    LaunchRequest request;
    request.ranks = num_ranks;
    return request;
}

std::vector<Card> two_cards(int64_t memory_bytes = 140 * kCardGiB) {
    return {{"NVIDIA H200", 9, 0, memory_bytes, "GPU-a"}, {"NVIDIA H200", 9, 0, memory_bytes, "GPU-b"}};
}

TEST(CardFindings, CardsThatAreNotUsed) {
    HostFacts host;
    expect_of_cards(judge_cards(host, {}, job_of(2)), Ok, "none seen; none is needed, training runs on the CPU");
    host.gpus = {"NVIDIA H100", "NVIDIA H100"};
    expect_of_cards(judge_cards(host, {}, job_of(2)), Note,
                    "2 GPUs (NVIDIA H100) not used: this vpp is built without its CUDA parts",
                    "scripts/build build-cuda -DVPP_CUDA=ON");
    expect_of_cards(judge_cards(host, {true, "CUDA 13.0, NCCL 2.28.9", {}}, job_of(2)), Note,
                    "2 GPUs (NVIDIA H100) not used: CUDA gives this process none",
                    "look at nvidia-smi and CUDA_VISIBLE_DEVICES; a driver for CUDA 13.0, NCCL 2.28.9 is needed");
}

TEST(CardFindings, HowValuesGoBetweenThem) {
    HostFacts host;
    CardFacts facts{true, "CUDA 13.0, NCCL 2.28.9", two_cards()};
    const std::string cards = "2 GPUs (NVIDIA H200, 140.0 GiB), CUDA 13.0, NCCL 2.28.9";
    expect_of_cards(judge_cards(host, facts, job_of(1)), Ok, cards);
    expect_of_cards(judge_cards(host, facts, job_of(2)), Ok, cards + "; one for each of 2 ranks: values go by NCCL");
    expect_of_cards(judge_cards(host, facts, job_of(4)), Ok,
                    cards + "; 4 ranks share them: values go through the host's memory, by MPI");
    facts.mpi_moves_card_memory = true;
    expect_of_cards(judge_cards(host, facts, job_of(4)), Ok,
                    cards + "; 4 ranks share them: values go from card to card, by MPI");
    host.allocation = "Slurm";
    LaunchRequest elsewhere = job_of(4);
    elsewhere.host = "a:2,b:2";
    expect_of_cards(judge_cards(host, facts, elsewhere), Ok,
                    cards + "; values go by NCCL where every rank has a card of its own");
}

TEST(CardFindings, RanksTakeCardsInTurn) {
    expect_of_cards(judge_card_memory({kCardGiB, 3 * kCardGiB, kCardGiB}, two_cards(4 * kCardGiB)), Ok,
                    "card 1 is the fullest: 1 rank keeps up to 3.0 GiB of 4.0 GiB there");
    expect_of_cards(judge_card_memory({3 * kCardGiB, kCardGiB, 3 * kCardGiB}, two_cards(4 * kCardGiB)), Note,
                    "card 0 is the fullest: 2 ranks keep up to 6.0 GiB of 4.0 GiB there",
                    "more pipeline.num_microbatches, pipeline.recompute.what = \"stage\", or more cards");
}

}  // namespace
}  // namespace vpp
