#include "graph/slow_trial.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace vpp {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

std::string name_of_op(int op) {
    return "op " + std::to_string(op);
}

TEST(SlowTrial, NamesTheOpThatRunsTooLong) {
    std::ostringstream out;
    {
        SlowTrial trial(name_of_op, out, 2ms);
        trial.begin(3);
        trial.begin(7);
        std::this_thread::sleep_for(80ms);
    }
    EXPECT_THAT(out.str(), HasSubstr("vpp: op 7 has run for 0 s on trial, to see shapes; where it is a loop that "
                                     "does not end, stop this and mend it\n"));
    const std::string text = out.str();
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 16) << "2, 4, 8, ... ms";
}

TEST(SlowTrial, IsSilentWhereEachOpIsQuick) {
    std::ostringstream out;
    {
        SlowTrial trial(name_of_op, out, 1h);
        for (int op = 0; op < 100; ++op) trial.begin(op);
    }
    EXPECT_EQ(out.str(), "");
}

}  // namespace
}  // namespace vpp
