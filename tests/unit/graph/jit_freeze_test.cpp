#include "graph/jit_freeze.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/graph/models.hpp"

namespace vpp {
namespace {

using namespace test;
using ::testing::HasSubstr;

JitGraph three_linears() {
    JitGraph jit;
    for (const char* name : {"0.weight", "1.weight", "2.weight"}) jit.parameters.push_back({name, {}, weight({2, 2})});
    jit.parameters.push_back({"0.mean", {}, values({2}), true});
    jit.parameters[2].aliases = {"head.weight"};
    return jit;
}

const KeyPosition kNowhere = [](const std::string&) { return std::nullopt; };

std::vector<bool> trained(const JitGraph& jit) {
    std::vector<bool> flags;
    for (const JitParameter& parameter : jit.parameters) flags.push_back(parameter.tensor.requires_grad());
    return flags;
}

TEST(Freeze, TakesTheGradientFromWhatAGlobMatches) {
    JitGraph jit = three_linears();
    freeze_parameters(jit, {}, kNowhere);
    EXPECT_EQ(trained(jit), (std::vector<bool>{true, true, true, false}));
    freeze_parameters(jit, {"1.*"}, kNowhere);
    EXPECT_EQ(trained(jit), (std::vector<bool>{true, false, true, false}));
    freeze_parameters(jit, {"head.*"}, kNowhere);  // another name of the third
    EXPECT_EQ(trained(jit), (std::vector<bool>{true, false, false, false}));
}

TEST(Freeze, AnExceptionTakesOutWhatGlobsBeforeItName) {
    JitGraph jit = three_linears();
    jit.parameters[0].tensor.set_requires_grad(false);  // by the file
    freeze_parameters(jit, {"*", "!0.*", "!head.*"}, kNowhere);
    EXPECT_EQ(trained(jit), (std::vector<bool>{false, false, true, false}));
    jit = three_linears();
    freeze_parameters(jit, {"*", "!*.weight", "1.*"}, kNowhere);
    EXPECT_EQ(trained(jit), (std::vector<bool>{true, false, true, false})) << "the last one decides";
    const std::string said = refusal(ErrorKind::Plan, [&] { freeze_parameters(jit, {"!1.*", "!lora"}, kNowhere); });
    EXPECT_THAT(said, HasSubstr("model.freeze: '!1.*' takes nothing out, since no glob comes before it; begin with "
                                "\"*\" to train it alone"));
    EXPECT_THAT(said, HasSubstr("no parameter of the model matches '!lora'"));
}

TEST(Freeze, WhatMatchesNothingIsNamed) {
    JitGraph jit = three_linears();
    const std::string said = refusal(ErrorKind::Plan, [&] {
        freeze_parameters(jit, {"0.*", "3.*", "*.mean"}, kNowhere);
    });
    EXPECT_THAT(said, HasSubstr("model.freeze: no parameter of the model matches '3.*'; names look like '0.weight'"));
    EXPECT_THAT(said, HasSubstr("matches '*.mean'"));
}

TEST(Freeze, SomethingIsLeftToTrain) {
    JitGraph jit = three_linears();
    EXPECT_THAT(refusal(ErrorKind::Plan, [&] { freeze_parameters(jit, {"*"}, kNowhere); }),
                HasSubstr("model.freeze leaves no parameter to train; name fewer"));
}

}  // namespace
}  // namespace vpp
