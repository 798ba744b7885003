#include "launch/mpirun_line.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/shell.hpp"

namespace vpp {
namespace {

HostFacts host_of(int cores, int cpus = 0) {
    HostFacts host;
    host.cores = cores;
    host.cpus = cpus > 0 ? cpus : cores;
    return host;
}

LaunchRequest request_of(int ranks, int threads = 1) {
    return {.ranks = ranks,
            .threads = threads,
            .host = "",
            .hostfile = "",
            .interface = "",
            .command = {"vpp", "train", "a.toml"}};
}

std::string line_of(const LaunchRequest& request, const HostFacts& host) {
    return shell_line(make_mpirun_line(request, host));
}

TEST(MpirunLine, EnoughCores) {
    EXPECT_EQ(line_of(request_of(4), host_of(8)), "mpirun -q -x OMP_NUM_THREADS=1 -np 4 vpp train a.toml");
}

TEST(MpirunLine, OneOrTwoRanksAreNotBoundToACoreEach) {
    EXPECT_EQ(line_of(request_of(2), host_of(8)),
              "mpirun -q --bind-to none -x OMP_NUM_THREADS=1 -np 2 vpp train a.toml");
}

TEST(MpirunLine, ThreadsNeedCores) {
    EXPECT_EQ(line_of(request_of(4, 2), host_of(8)),
              "mpirun -q --bind-to none -x OMP_NUM_THREADS=2 -np 4 vpp train a.toml");
}

TEST(MpirunLine, OversubscribesOnlyWhereMpirunWouldRefuse) {
    EXPECT_EQ(line_of(request_of(4), host_of(2)),
              "mpirun -q --oversubscribe -x OMP_NUM_THREADS=1 -np 4 vpp train a.toml");
    EXPECT_FALSE(is_oversubscribed(request_of(4), host_of(4)));
    EXPECT_TRUE(is_oversubscribed(request_of(4), host_of(2, 4))) << "mpirun counts cores, not hardware threads";
    EXPECT_TRUE(is_oversubscribed(request_of(4), host_of(4, 2)));
}

TEST(MpirunLine, OtherHostsHaveWhatIsForwarded) {
    LaunchRequest request = request_of(4);
    request.forwarded = {"NCCL_DEBUG", "NCCL_IB_HCA"};
    EXPECT_EQ(line_of(request, host_of(8)), "mpirun -q -x OMP_NUM_THREADS=1 -np 4 vpp train a.toml");
    request.host = "a:4";
    EXPECT_EQ(line_of(request, host_of(8)),
              "mpirun -q --host a:4 -x OMP_NUM_THREADS=1 -x NCCL_DEBUG -x NCCL_IB_HCA -np 4 vpp train a.toml");
}

TEST(MpirunLine, RootAndForbiddenCopies) {
    HostFacts host = host_of(8);
    host.is_root = true;
    host.can_copy_between_processes = false;
    EXPECT_EQ(line_of(request_of(4), host),
              "mpirun -q --allow-run-as-root --mca btl_vader_single_copy_mechanism none -x OMP_NUM_THREADS=1 -np 4 vpp "
              "train a.toml");
}

TEST(MpirunLine, RanksWithCardsAreNotBoundToSocketsInTurn) {
    HostFacts host = host_of(8);
    host.gpus = {"NVIDIA H100", "NVIDIA H100"};
    EXPECT_EQ(line_of(request_of(4), host), "mpirun -q --bind-to none -x OMP_NUM_THREADS=1 -np 4 vpp train a.toml");
}

TEST(MpirunLine, OtherHostsSayThemselvesWhatTheyTake) {
    LaunchRequest request = request_of(4);
    request.host = "a:2,b:2";
    EXPECT_EQ(line_of(request, host_of(2)), "mpirun -q --host a:2,b:2 -x OMP_NUM_THREADS=1 -np 4 vpp train a.toml");
    request.host = "";
    request.hostfile = "my hosts";
    EXPECT_EQ(line_of(request, host_of(2)),
              "mpirun -q --hostfile 'my hosts' -x OMP_NUM_THREADS=1 -np 4 vpp train a.toml");
    HostFacts allocated = host_of(2);
    allocated.allocation = "SLURM_JOB_ID";
    EXPECT_FALSE(is_oversubscribed(request_of(4), allocated));
}

TEST(MpirunLine, OneNetworkForMessagesAndForMpirunItself) {
    LaunchRequest request = request_of(4);
    request.host = "a:2,b:2";
    request.interface = "10.0.0.0/24";
    EXPECT_EQ(line_of(request, host_of(2)),
              "mpirun -q --host a:2,b:2 --mca btl_tcp_if_include 10.0.0.0/24 --mca oob_tcp_if_include 10.0.0.0/24 -x "
              "OMP_NUM_THREADS=1 -np 4 vpp train a.toml");
}

TEST(MpirunLine, CountsSlotsAsMpirunDoes) {
    EXPECT_EQ(num_slots("a"), 1);
    EXPECT_EQ(num_slots("a,b:3,a"), 5);
    EXPECT_EQ(num_slots("a:*"), std::nullopt);
    EXPECT_EQ(num_slots("a:2x"), std::nullopt);
}

TEST(MpirunLine, TooFewSlotsAreSaidSinceAQuietMpirunSaysNothing) {
    LaunchRequest request = request_of(4);
    request.host = "localhost:2,b";
    try {
        make_mpirun_line(request, host_of(8));
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::Mesh);
        EXPECT_STREQ(error.what(),
                     "--host localhost:2,b has room for too few ranks (got 3, expected 4); a name without a number "
                     "counts as one: try --host localhost:4");
    }
    request.host = "localhost:4";
    EXPECT_NO_THROW(make_mpirun_line(request, host_of(2)));
}

}  // namespace
}  // namespace vpp
