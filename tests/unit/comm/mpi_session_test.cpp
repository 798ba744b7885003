// What needs no MPI; the session itself is tested under mpirun in tests/multi/comm_mpi_test.cpp.
#include "comm/mpi_session.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace vpp {
namespace {

using Environment = std::map<std::string, std::string>;

TEST(LaunchInfo, IsEmptyWithoutMpirun) {
    EXPECT_FALSE(launch_info({}));
    EXPECT_FALSE(launch_info({{"OMPI_COMM_WORLD_RANK", "1"}}));
}

TEST(LaunchInfo, ReadsWhatMpirunSays) {
    const auto info = launch_info({{"OMPI_COMM_WORLD_RANK", "3"},
                                   {"OMPI_COMM_WORLD_SIZE", "8"},
                                   {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                   {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
    ASSERT_TRUE(info);
    EXPECT_EQ(info->rank, 3);
    EXPECT_EQ(info->size, 8);
    EXPECT_EQ(info->local_rank, 1);
    EXPECT_EQ(info->local_size, 2);
}

TEST(LaunchInfo, RefusesNonsense) {
    const std::vector<Environment> wrong = {{{"OMPI_COMM_WORLD_RANK", "x"}, {"OMPI_COMM_WORLD_SIZE", "2"}},
                                            {{"OMPI_COMM_WORLD_RANK", ""}, {"OMPI_COMM_WORLD_SIZE", "2"}},
                                            {{"OMPI_COMM_WORLD_RANK", "-1"}, {"OMPI_COMM_WORLD_SIZE", "2"}},
                                            {{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "2"}},
                                            {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "9999999999"}}};
    for (const Environment& environment : wrong) {
        try {
            launch_info(environment);
            FAIL();
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), ErrorKind::Mesh);
        }
    }
}

TEST(CheckMpi, PassesSuccess) {
    EXPECT_NO_THROW(detail::check_mpi(0, "MPI_Test"));
}

}  // namespace
}  // namespace vpp
