#include "plan/paths.hpp"

#include <gtest/gtest.h>

namespace vpp {
namespace {

TEST(Paths, AreRelativeToThePlan) {
    EXPECT_EQ(resolved_path("configs/p.toml", "../a.pt"), "configs/../a.pt");
    EXPECT_EQ(resolved_path("p.toml", "a.pt"), "a.pt");
    EXPECT_EQ(resolved_path("/x/p.toml", "/data/a.pt"), "/data/a.pt");
}

TEST(Paths, WrittenIsTheInverseOfResolved) {
    for (const std::string plan : {"p.toml", "./p.toml", "configs/p.toml", "/x/p.toml", "/p.toml", "../p.toml"}) {
        for (const std::string path : {"a.pt", "../a.pt", "/data/a.pt", "/x/a.pt", "/x//a.pt", "./a", "x/", "/"}) {
            const std::string resolved = resolved_path(plan, path);
            EXPECT_EQ(resolved_path(plan, written_path(plan, resolved)), resolved) << plan << ' ' << path;
        }
        EXPECT_EQ(written_path(plan, resolved_path(plan, "../out/a.pt")), "../out/a.pt");
    }
}

}  // namespace
}  // namespace vpp
