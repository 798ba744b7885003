#include "base/exit_codes.hpp"

#include <gtest/gtest.h>

#include <set>

namespace vpp {
namespace {

TEST(ExitCodes, AreThoseOfTheDesignInTheirOrder) {
    const std::vector<int> design = {0, 2, 65, 66, 69, 70, 71, 73, 74, 75, 76, 77, 78, 79, 80, 85, 130};
    std::vector<int> codes;
    std::set<std::string> meanings;
    for (const auto& [code, meaning] : exit_codes()) {
        codes.push_back(code);
        EXPECT_TRUE(meanings.insert(meaning).second) << meaning;
    }
    EXPECT_EQ(codes, design);
}

}  // namespace
}  // namespace vpp
