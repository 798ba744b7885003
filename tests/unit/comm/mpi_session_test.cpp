// What needs no MPI; the session itself is tested under mpirun in tests/multi/comm_mpi_test.cpp.
#include "comm/mpi_session.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

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

using Environment = std::map<std::string, std::string>;

Environment task_of_four() {
    return {{"SLURM_PROCID", "2"}, {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_LOCALID", "1"}, {"PMIX_RANK", "2"}};
}

std::string mesh_error_of(const std::function<void()>& body) {
    try {
        body();
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::Mesh);
        return error.what();
    }
    return "";
}

TEST(LaunchInfo, ReadsWhatSrunSays) {
    const auto info = launch_info(task_of_four());
    ASSERT_TRUE(info);
    EXPECT_EQ(info->rank, 2);
    EXPECT_EQ(info->size, 4);
    EXPECT_EQ(info->local_rank, 1);
    EXPECT_TRUE(info->can_join);
    EXPECT_TRUE(info->by_srun);
    for (const auto& [name, value] : task_of_four()) {
        EXPECT_TRUE(std::ranges::count(launch_variables(), name)) << name << " is read and not handed in";
    }
}

TEST(LaunchInfo, TellsTasksFromWhatOnlyLooksLikeThem) {
    Environment alone = task_of_four(), shell = alone, batch = alone, below_mpirun = alone;
    alone["SLURM_STEP_NUM_TASKS"] = "1";
    EXPECT_FALSE(launch_info(alone));
    shell["SLURM_PTY_PORT"] = "4711";
    EXPECT_FALSE(launch_info(shell)) << "srun --pty bash";
    batch.erase("SLURM_STEP_NUM_TASKS");
    EXPECT_FALSE(launch_info(batch)) << "the script of sbatch";
    below_mpirun["OMPI_COMM_WORLD_RANK"] = "5";
    below_mpirun["OMPI_COMM_WORLD_SIZE"] = "8";
    EXPECT_EQ(launch_info(below_mpirun)->size, 8) << "mpirun starts its daemons by srun";
    EXPECT_FALSE(launch_info(below_mpirun)->by_srun);
    Environment wrong = task_of_four();
    wrong["SLURM_PROCID"] = "4";
    EXPECT_EQ(
        mesh_error_of([&] { launch_info(wrong); }),
        "Slurm's environment contradicts itself: SLURM_PROCID 4 of SLURM_STEP_NUM_TASKS 4; try to start with srun");
}

TEST(LaunchInfo, TasksThatMpiDoesNotJoinAreNoJob) {
    Environment without = task_of_four();
    without.erase("PMIX_RANK");
    const auto apart = launch_info(without), together = launch_info(task_of_four());
    ASSERT_TRUE(apart && together);
    EXPECT_EQ(mesh_error_of([&] { check_is_one_job(*apart, std::nullopt); }),
              "srun has started 4 tasks without PMIx, and MPI would take each of them for a job of its own; try srun "
              "--mpi=pmix, or vpp run in the allocation");
    EXPECT_EQ(
        mesh_error_of([&] { check_is_one_job(*together, 1); }),
        "MPI has joined other ranks than were started (got 1, expected 4): vpp's Open MPI and what has started it "
        "do not speak the same PMI; try srun --mpi=pmix, or vpp run in the allocation");
    EXPECT_EQ(mesh_error_of([&] { check_is_one_job(*together, std::nullopt); }), "");
    EXPECT_EQ(mesh_error_of([&] { check_is_one_job(*together, 4); }), "");
}

TEST(CheckMpi, PassesSuccess) {
    EXPECT_NO_THROW(detail::check_mpi(0, "MPI_Test"));
}

}  // namespace
}  // namespace vpp
