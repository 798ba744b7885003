#include "engine/stragglers.hpp"

#include <gtest/gtest.h>

namespace vpp::test {
namespace {

using Seconds = std::vector<double>;

/// Looks `count` times; all that is said.
std::vector<std::string> look(Stragglers& stragglers, const Seconds& seconds, int count) {
    std::vector<std::string> said;
    for (int i = 0; i < count; ++i) {
        for (std::string& sentence : stragglers.look(seconds)) said.push_back(std::move(sentence));
    }
    return said;
}

TEST(Stragglers, aRankThatBecomesSlowIsSaidOnceAndThatItRecovers) {
    Stragglers stragglers(3);
    EXPECT_TRUE(look(stragglers, {0.1, 0.2, 0.3}, 20).empty()) << "stages differ";
    const auto said = look(stragglers, {0.1, 0.4, 0.3}, 20);
    ASSERT_EQ(said.size(), 1u);
    EXPECT_EQ(said[0],
              "rank 1 is slow: it computed 400.0 ms in a step, 2.0 times its median, and so for 5 steps; the whole job "
              "waits for it");
    EXPECT_EQ(look(stragglers, {0.1, 0.2, 0.3}, 3), std::vector<std::string>{"rank 1 is back at its pace"});
}

TEST(Stragglers, theNextTimesTakeLonger) {
    Stragglers stragglers(2);
    look(stragglers, {0.1, 0.1}, 20);
    for (const int steps : {5, 10, 20, 40, 80, 160, 320, 320}) {
        EXPECT_TRUE(look(stragglers, {0.1, 0.5}, steps - 1).empty());
        const auto said = look(stragglers, {0.1, 0.5}, 100);
        ASSERT_EQ(said.size(), 1u);
        EXPECT_NE(said[0].find("and so for " + std::to_string(steps) + " steps"), std::string::npos) << said[0];
        EXPECT_EQ(look(stragglers, {0.1, 0.1}, 1).size(), 1u);
    }
    look(stragglers, {0.5, 0.1}, Stragglers::kSlowSteps - 1);
    EXPECT_EQ(look(stragglers, {0.5, 0.1}, 1).size(), 1u) << "of each rank for itself";
}

TEST(Stragglers, aFewSlowStepsAreNone) {
    Stragglers stragglers(2);
    look(stragglers, {0.1, 0.1}, 20);
    EXPECT_TRUE(look(stragglers, {0.1, 0.5}, Stragglers::kSlowSteps - 1).empty());
    EXPECT_TRUE(look(stragglers, {0.1, 0.1}, 1).empty());
    EXPECT_TRUE(look(stragglers, {0.1, 0.5}, Stragglers::kSlowSteps - 1).empty());
}

TEST(Stragglers, whatSlowsAllIsNobodysFault) {
    Stragglers stragglers(3);
    look(stragglers, {0.1, 0.2, 0.3}, 20);
    EXPECT_TRUE(look(stragglers, {0.2, 0.4, 0.6}, 20).empty());
}

TEST(Stragglers, aRankAtItsPaceIsNotSlowBesideOneThatBecameFaster) {
    for (const double pace : {0.9, 1.0, 1.3}) {
        Stragglers stragglers(2);
        look(stragglers, {0.2, 0.1}, 20);
        EXPECT_TRUE(look(stragglers, {0.1, 0.1 * pace}, 20).empty()) << pace;
    }
    Stragglers stragglers(2);
    look(stragglers, {0.2, 0.1}, 20);
    EXPECT_EQ(look(stragglers, {0.1, 0.15}, 20).size(), 1u) << "slow by its own past";
}

TEST(Stragglers, youngRunsSayNothing) {
    Stragglers stragglers(2);
    look(stragglers, {0.1, 0.1}, static_cast<int>(Stragglers::kLeastSteps) - 1);
    Stragglers old = stragglers;
    EXPECT_TRUE(look(stragglers, {0.1, 9}, 1).empty());
    look(old, {0.1, 0.1}, 1);
    EXPECT_EQ(look(old, {0.1, 9}, 9).size(), 1u);
}

TEST(Stragglers, paceBelowTheShareOnly) {
    for (const double seconds : {0.14, 0.15}) {
        Stragglers stragglers(2);
        look(stragglers, {0.1, 0.1}, 20);
        EXPECT_EQ(look(stragglers, {0.1, seconds}, 20).size(), seconds > 0.1 / Stragglers::kSlowPace ? 1u : 0u);
    }
}

}  // namespace
}  // namespace vpp::test
