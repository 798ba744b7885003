// What needs no MPI; the session itself is tested under mpirun in tests/multi/comm_mpi_test.cpp.
#include "comm/mpi_session.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.hpp"

namespace vpp {
namespace {

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
    const auto no_count = [](const std::string& name, const std::string& got) {
        return "the environment variable OMPI_COMM_WORLD_" + name + " is no rank or count (got \"" + got +
               "\"); try to start with mpirun";
    };
    struct Case {
        const char *rank, *size;
        std::string message;
    };
    const std::vector<Case> cases = {
        {"x", "2", no_count("RANK", "x")},
        {"", "2", no_count("RANK", "")},
        {"-1", "2", no_count("RANK", "-1")},
        {"0", "9999999999", no_count("SIZE", "9999999999")},
        {"2", "2", "mpirun's environment contradicts itself: rank 2 of 2; try to start with mpirun"},
    };
    for (const Case& wrong : cases) {
        try {
            launch_info({{"OMPI_COMM_WORLD_RANK", wrong.rank}, {"OMPI_COMM_WORLD_SIZE", wrong.size}});
            ADD_FAILURE() << wrong.message;
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), ErrorKind::Mesh);
            EXPECT_EQ(error.what(), wrong.message);
        }
    }
}

TEST(CheckMpi, PassesSuccess) {
    EXPECT_NO_THROW(detail::check_mpi(0, "MPI_Test"));
}

}  // namespace
}  // namespace vpp
