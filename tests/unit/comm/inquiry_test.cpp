#include "comm/inquiry.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace vpp {
namespace {

Wait receive_from(int peer, int edge) {
    return {Wait::Kind::Receive, peer, {edge, 3, Direction::Forward}, 4096, 60.25};
}

RankStatus waiting(const std::string& position, const Wait& wait) {
    return {position, 60.5, wait};
}
RankStatus computing(const std::string& position) {
    return {position, 61, std::nullopt};
}

Inquiry inquiry_of(std::vector<std::optional<RankStatus>> answers) {
    Inquiry inquiry{0, std::move(answers), {}, {}};
    inquiry.heard_seconds.assign(inquiry.answers.size(), 62.0);
    return inquiry;
}

TEST(RankStatus, SurvivesTheWay) {
    const RankStatus status = waiting("stage 1, F of microbatch 3", receive_from(2, 7));
    const RankStatus back = decode_rank_status(encode(status));
    EXPECT_EQ(to_text(1, back), to_text(1, status));
    EXPECT_EQ(
        to_text(1, back),
        "rank 1 (stage 1, F of microbatch 3) has waited 60.2 s for rank 2 to send forward edge 7, microbatch 3 (at "
        "most 4.0 KiB)");
    EXPECT_EQ(to_text(2, decode_rank_status(encode(computing("load")))), "rank 2 (load) has computed for 61.0 s");
}

TEST(RankStatus, SaysNoSizeOfWhatHasNoBound) {
    Wait wait = receive_from(2, 7);
    wait.num_bytes = kAnySize;
    EXPECT_EQ(to_text(1, decode_rank_status(encode(waiting("load", wait)))),
              "rank 1 (load) has waited 60.2 s for rank 2 to send forward edge 7, microbatch 3");
}

TEST(RankStatus, IsBoundedAndChecked) {
    const RankStatus status = computing(std::string(100000, 'x'));
    EXPECT_LT(encode(status).size(), 1000u);
    const Bytes bytes = encode(waiting("stage\x1b[2J", receive_from(2, 7)));
    EXPECT_EQ(decode_rank_status(bytes).position, "stage?[2J");
    for (size_t cut = 0; cut < bytes.size(); ++cut) {
        EXPECT_THROW(decode_rank_status(std::span(bytes).first(cut)), Error) << cut;
    }
}

TEST(LostText, NamesASilentPeer) {
    const std::string text = lost_text(inquiry_of({waiting("stage 0", receive_from(1, 7)), std::nullopt}));
    EXPECT_EQ(text,
              "rank 0 (stage 0) has waited 60.2 s for rank 1 to send forward edge 7, microbatch 3 (at most 4.0 KiB); "
              "rank 1 is silent (stopped, ended or unreachable; last heard of 62.0 s ago)");
}

TEST(LostText, NamesASilentRankBehindAnother) {
    const std::string text = lost_text(
        inquiry_of({waiting("stage 0", receive_from(1, 7)), waiting("stage 1", receive_from(2, 8)), std::nullopt}));
    EXPECT_NE(text.find("; rank 2 is silent"), std::string::npos) << text;
    EXPECT_NE(text.find("; rank 1 (stage 1) has waited 60.2 s for rank 2"), std::string::npos) << text;
}

TEST(LostText, NamesTheRankThatHoldsUpTheOthers) {
    const std::string text = lost_text(inquiry_of(
        {waiting("stage 0", receive_from(1, 7)), waiting("stage 1", receive_from(2, 8)), computing("stage 2, F")}));
    EXPECT_NE(text.find("every rank answers"), std::string::npos) << text;
    EXPECT_TRUE(text.ends_with("rank 2 (stage 2, F) has computed for 61.0 s")) << text;
}

TEST(LostText, TellsWhereTheOthersAre) {
    const std::string text = lost_text(
        inquiry_of({waiting("a", receive_from(1, 7)), std::nullopt, computing("c"), waiting("d", receive_from(2, 8))}));
    EXPECT_TRUE(
        text.ends_with("; meanwhile rank 2 (c) has computed for 61.0 s, rank 3 (d) has waited 60.2 s for rank 2 to "
                       "send forward edge 8, "
                       "microbatch 3 (at most 4.0 KiB)"))
        << text;
}

TEST(LostText, FindsARingOfWaits) {
    Inquiry inquiry = inquiry_of(
        {waiting("a", receive_from(1, 7)), waiting("b", receive_from(2, 8)), waiting("c", receive_from(1, 9))});
    EXPECT_TRUE(lost_text(inquiry).ends_with("; so ranks 1 and 2 wait for one another")) << lost_text(inquiry);
    inquiry.unposted = {{4, 1, Direction::Backward}};
    EXPECT_TRUE(lost_text(inquiry).ends_with("it has sent what nobody here expects: backward edge 4, microbatch 1"));
}

TEST(LostText, StaysShortInALargeJob) {
    std::vector<std::optional<RankStatus>> answers(1000);
    answers[0] = waiting("a", receive_from(999, 7));
    const std::string text = lost_text(inquiry_of(answers));
    EXPECT_LT(text.size(), 1000u);
    for (auto& answer : answers) answer = computing("b");
    answers[0] = waiting("a", receive_from(999, 7));
    EXPECT_LT(lost_text(inquiry_of(answers)).size(), 1000u);
    EXPECT_NE(text.find("and 991 more are silent"), std::string::npos) << text;
}

}  // namespace
}  // namespace vpp
