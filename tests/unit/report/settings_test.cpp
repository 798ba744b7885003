#include "report/settings.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace vpp {
namespace {

TEST(Settings, APlanBecomesAFlatList) {
    const Settings settings = settings_from_plan(
        "[model]\nfile = \"a.pt\"\ninputs = [\"x\", \"y\"]\n[optimizer]\nlr = 0.001\nbetas = [0.9, 0.95]\n"
        "[[optimizer.group]]\nmatch = [\"*\"]\n[data]\nshuffle = true\n[train]\nsteps = 300\n");
    EXPECT_EQ(setting(settings, "model.file"), "a.pt");
    EXPECT_EQ(setting(settings, "model.inputs"), "[x, y]");
    EXPECT_EQ(setting(settings, "optimizer.lr"), "0.001");
    EXPECT_EQ(setting(settings, "optimizer.group[0].match"), "[*]");
    EXPECT_EQ(setting(settings, "data.shuffle"), "true");
    EXPECT_EQ(setting(settings, "none"), std::nullopt);
    EXPECT_EQ(count_setting(settings, "train.steps"), 300);
    EXPECT_EQ(count_setting(settings, "optimizer.lr"), std::nullopt);
    EXPECT_EQ(count_setting(settings, "model.file"), std::nullopt);
}

TEST(Settings, OnlyWhatDiffersIsListed) {
    const Settings one = settings_from_plan("[train]\nsteps = 300\nseed = 1\n[run]\ndir = \"a\"\n");
    const Settings two = settings_from_plan("[train]\nsteps = 200\nseed = 1\n[run]\ndir = \"b\"\n[mesh]\npp = 2\n");
    const std::vector<Difference> found = differences({one, two});
    ASSERT_EQ(found.size(), 2u);
    EXPECT_EQ(found[0].key, "train.steps");
    EXPECT_EQ(found[0].values[1], "200");
    EXPECT_EQ(found[1].key, "mesh.pp");
    EXPECT_EQ(found[1].values[0], std::nullopt);
    EXPECT_TRUE(differences({one, one}).empty());
}

TEST(Settings, TextThatIsNoTomlIsRefused) {
    EXPECT_THROW(settings_from_plan("[model\n"), Error);
}

}  // namespace
}  // namespace vpp
