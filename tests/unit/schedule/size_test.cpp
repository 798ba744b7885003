#include "schedule/size.hpp"

#include <climits>

#include "unit/schedule/support.hpp"

namespace vpp {
namespace {

using testing::error_text;

std::string size_problem(ScheduleSize size) {
    return error_text(ErrorKind::Plan, [&] { check_size(size); });
}

TEST(CheckSize, OrdinarySizesPass) {
    EXPECT_NO_THROW(check_size({1, 1, 1}));
    EXPECT_NO_THROW(check_size({64, 8, 512}));
    EXPECT_NO_THROW(check_size({1, 1, 1 << 22}));
}

TEST(CheckSize, NumbersBelowOneAreNamed) {
    EXPECT_EQ(size_problem({0, 1, 1}), "num_stages is too small (got 0, expected at least 1); try 1");
    EXPECT_EQ(size_problem({1, -2, 1}), "virtual_chunks is too small (got -2, expected at least 1); try 1");
    EXPECT_EQ(size_problem({1, 1, 0}), "num_microbatches is too small (got 0, expected at least 1); try 1");
}

TEST(CheckSize, TooLongSchedulesNameTheLargestThatFits) {
    EXPECT_EQ(size_problem({4, 2, 1 << 20}),
              "the schedule is too long (num_stages 4 x virtual_chunks 2 x num_microbatches 1048576, expected a "
              "product of at most 4194304); try num_microbatches = 524288");
    EXPECT_NO_THROW(check_size({4, 2, 524288}));
    EXPECT_CONTAINS(size_problem({INT_MAX, INT_MAX, INT_MAX}), "try fewer stages");
}

TEST(OneStagePerRank, NamesBothWaysOut) {
    EXPECT_NO_THROW(check_one_stage_per_rank({4, 1, 2}, "GPIPE", "OTHER"));
    EXPECT_EQ(error_text(ErrorKind::Plan,
                         [] {
                             check_one_stage_per_rank({4, 3, 2}, "GPIPE", "OTHER");
                         }),
              "GPIPE puts one stage on each rank (got virtual_chunks = 3, expected 1); try virtual_chunks = 1 or "
              "schedule_type = \"OTHER\"");
}

}  // namespace
}  // namespace vpp
