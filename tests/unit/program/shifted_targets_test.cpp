// Targets that the data and the model both shift.
#include "program/shifted_targets.hpp"

#include <gtest/gtest.h>

#include "unit/graph/models.hpp"

namespace vpp::test {
namespace {

/// Of forward(self, tokens, targets), whose loss is that of the targets that the code makes.
std::string text_of(const std::string& code, const Plan& plan) {
    TorchScriptOptions options = options_for({{"tokens", DType::I64, {5}}, {"targets", DType::I64, {5}}});
    LoadedModel model =
        load({"Model",
              "def forward(self, tokens, targets):\n    s = self.w.mul(tokens.unsqueeze(-1))\n    " + code +
                  "\n    return torch.cross_entropy_loss(s.flatten(0, 1), t.reshape(-1), None, "
                  "1, -100)\n",
              {{"w", weight({7})}}},
             options);
    return shifted_twice_text(plan, options.fields, options.microbatch_size, model.graph, *model.source);
}

std::string text_of(const std::string& code) {
    Plan plan;
    plan.data.kind = "text";
    return text_of(code, plan);
}

TEST(ShiftedTargets, AreSaidWithTheRemedy) {
    const std::string said =
        "the field 'targets' is the tokens shifted by one, and forward shifts it once more: the loss leaves out the "
        "first of a sample, so the model would learn the token after the next; set model.inputs = [\"tokens\", "
        "\"tokens\"]";
    EXPECT_EQ(text_of("t = torch.constant_pad_nd(targets, [0, 1], -100)[:, 1:].contiguous()"), said);
    EXPECT_EQ(text_of("t = targets[:, 1:]\n    s = s[:, :-1]"), said);
    EXPECT_EQ(text_of("t = torch.roll(targets, [-1], [1])\n    t[:, -1] = -100"), said);
    Plan by_hand;
    by_hand.data.kind = "tokens";
    by_hand.pipeline.mode = "MANUAL_EAGER";
    EXPECT_EQ(text_of("t = targets[:, 1:]\n    s = s[:, :-1]", by_hand),
              said.substr(0, said.find("; ")) + "; name 'tokens' in its place in the stage's inputs");
}

TEST(ShiftedTargets, AreNoneWhereTheFirstOneCounts) {
    EXPECT_EQ(text_of("t = targets"), "");
    EXPECT_EQ(text_of("t = targets[:, :-1]\n    s = s[:, :-1]"), "");
    EXPECT_EQ(text_of("t = targets.masked_fill(targets == 0, -100)"), "");
    EXPECT_EQ(text_of("t = torch.constant_pad_nd(tokens, [0, 1], -100)[:, 1:].contiguous()"), "") << "the remedy";
    EXPECT_EQ(text_of("t = targets * 0"), "");
    Plan arrays;
    arrays.data.kind = "arrays";
    EXPECT_EQ(text_of("t = targets[:, 1:]\n    s = s[:, :-1]", arrays), "") << "a field of the user's own";
}

TEST(ShiftedTargets, OpsThatFailOnNumbersSayNothing) {
    EXPECT_EQ(
        text_of("t = torch.embedding(torch.arange(9).unsqueeze(1), targets).squeeze(-1)[:, 1:]\n    s = s[:, :-1]"),
        "");
}

}  // namespace
}  // namespace vpp::test
