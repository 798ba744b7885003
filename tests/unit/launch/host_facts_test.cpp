#include "launch/host_facts.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace vpp {
namespace {

namespace fs = std::filesystem;

/// A made-up proc and sys.
class HostFactsTest : public testing::Test {
  protected:
    void SetUp() override {
        root_ = fs::temp_directory_path() / ("vpp-host-" + std::to_string(::getpid()));
        fs::create_directories(root_);
    }
    void TearDown() override { fs::remove_all(root_); }
    void write(const std::string& path, const std::string& text) {
        fs::create_directories((root_ / path).parent_path());
        std::ofstream(root_ / path) << text;
    }
    void place_cpu(int cpu, int package, int core) {
        const std::string folder = "sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
        write(folder + "physical_package_id", std::to_string(package) + "\n");
        write(folder + "core_id", std::to_string(core) + "\n");
    }

    fs::path root_;
};

TEST_F(HostFactsTest, ThreadsOfACoreCountOnce) {
    for (int cpu = 0; cpu < 8; ++cpu) place_cpu(cpu, cpu / 2 % 2, cpu / 4);
    EXPECT_EQ(detail::count_cores({0, 1, 2, 3, 4, 5, 6, 7}, root_), 4);
    EXPECT_EQ(detail::count_cores({0, 1}, root_), 1);
    EXPECT_EQ(detail::count_cores({0, 2}, root_), 2) << "the same core number in two packages";
}

TEST_F(HostFactsTest, WithoutTopologyEveryCpuIsACore) {
    EXPECT_EQ(detail::count_cores({0, 1, 2}, root_), 3);
    EXPECT_EQ(detail::count_cores({}, root_), 1);
}

TEST_F(HostFactsTest, MemoryIsWhatHostAndGroupLeave) {
    EXPECT_EQ(detail::available_memory(root_), 0);
    EXPECT_EQ(detail::total_memory(root_), 0);
    write("proc/meminfo", "MemTotal:       2000 kB\nMemFree:  10 kB\nMemAvailable:   1000 kB\n");
    EXPECT_EQ(detail::available_memory(root_), 1000 * 1024);
    EXPECT_EQ(detail::total_memory(root_), 2000 * 1024);
    write("sys/fs/cgroup/memory.current", "300000\n");
    write("sys/fs/cgroup/memory.max", "max\n");
    EXPECT_EQ(detail::available_memory(root_), 1000 * 1024);
    write("sys/fs/cgroup/memory.max", "500000\n");
    EXPECT_EQ(detail::available_memory(root_), 200000);
    EXPECT_EQ(detail::total_memory(root_), 500000);
    write("sys/fs/cgroup/memory.stat", "anon 1\nfile 50000\n");
    EXPECT_EQ(detail::available_memory(root_), 250000);
    write("sys/fs/cgroup/memory.stat", "anon 1\nfile 50000\nshmem 20000\n");
    EXPECT_EQ(detail::available_memory(root_), 230000) << "tmpfs gives nothing up";
    write("sys/fs/cgroup/memory.stat", "anon 1\nfile 50000\nshmem 60000\n");
    EXPECT_EQ(detail::available_memory(root_), 200000);
}

TEST_F(HostFactsTest, TheTightestOfTheGroupsAroundThisProcessCounts) {
    write("proc/meminfo", "MemTotal: 2000 kB\nMemAvailable: 1000 kB\n");
    const auto limit = [&](const std::string& group, const std::string& bytes, const std::string& used) {
        write("sys/fs/cgroup/" + group + "/memory.max", bytes + "\n");
        write("sys/fs/cgroup/" + group + "/memory.current", used + "\n");
    };
    limit("system.slice/job", "400000", "100000");
    EXPECT_EQ(detail::total_memory(root_), 2000 * 1024) << "another group";
    write("proc/self/cgroup", "1:name=systemd:/x\n0::/system.slice/job/step_0\n");
    EXPECT_EQ(detail::total_memory(root_), 400000);
    EXPECT_EQ(detail::available_memory(root_), 300000);
    limit("system.slice/job/step_0", "max", "100000");
    limit("system.slice", "600000", "500000");
    EXPECT_EQ(detail::total_memory(root_), 400000);
    EXPECT_EQ(detail::available_memory(root_), 100000);
    write("proc/self/cgroup", "0::/../other\n");
    EXPECT_EQ(detail::total_memory(root_), 2000 * 1024) << "outside of what a container sees";
}

TEST_F(HostFactsTest, GroupsOfTheFirstVersion) {
    write("proc/meminfo", "MemTotal: 2000 kB\nMemAvailable: 1000 kB\n");
    write("proc/self/cgroup", "9:cpu,cpuacct:/\n4:memory:/slurm/job_7\n0::/\n");
    write("sys/fs/cgroup/memory/slurm/job_7/memory.limit_in_bytes", "400000\n");
    write("sys/fs/cgroup/memory/slurm/job_7/memory.usage_in_bytes", "300000\n");
    write("sys/fs/cgroup/memory/slurm/job_7/memory.stat", "cache 1\nshmem 9\ntotal_cache 50000\ntotal_shmem 10000\n");
    write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    write("sys/fs/cgroup/memory/memory.usage_in_bytes", "900000\n");
    EXPECT_EQ(detail::total_memory(root_), 400000);
    EXPECT_EQ(detail::available_memory(root_), 140000);
}

TEST_F(HostFactsTest, OwnMemory) {
    EXPECT_EQ(own_memory_bytes(root_), 0);
    write("proc/self/status", "Name:\tvpp\nVmRSS:\t  900 kB\nRssAnon:\t  500 kB\n");
    EXPECT_EQ(own_memory_bytes(root_), 500 * 1024);
    EXPECT_GT(own_memory_bytes(), 0);
}

TEST_F(HostFactsTest, CardsByTheirNames) {
    EXPECT_TRUE(find_gpus(root_).empty());
    write("proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: \t\t NVIDIA H100\nIRQ: 1\n");
    EXPECT_EQ(find_gpus(root_), std::vector<std::string>{"NVIDIA H100"});
}

TEST_F(HostFactsTest, BatchSystemsAndTmpdir) {
    const HostFacts facts = look_at_host({{"SLURM_JOB_ID", "17"}, {"TMPDIR", "/nowhere"}}, root_);
    EXPECT_EQ(facts.allocation, "SLURM_JOB_ID");
    EXPECT_EQ(facts.allocated_ranks, std::nullopt) << "sbatch --nodes alone";
    EXPECT_EQ(look_at_host({{"SLURM_JOB_ID", "17"}, {"SLURM_NTASKS", "6"}}, root_).allocated_ranks, 6);
    EXPECT_EQ(look_at_host({{"SLURM_NTASKS", "6"}}, root_).allocated_ranks, std::nullopt) << "no allocation";
    EXPECT_TRUE(std::ranges::count(host_variables(), "SLURM_NTASKS"));
    EXPECT_EQ(facts.temporary_folder, "/nowhere");
    EXPECT_EQ(facts.temporary_folder_problem, "is no folder");
    const auto two = look_at_host({{"OMPI_MCA_orte_tmpdir_base", root_.string()}, {"TMPDIR", "/nowhere"}}, root_);
    EXPECT_EQ(two.temporary_folder, root_);
    EXPECT_EQ(two.temporary_folder_problem, "");
    EXPECT_EQ(look_at_host({}, root_).allocation, "");
    EXPECT_EQ(look_at_host({}, root_).temporary_folder, "/tmp");
}

TEST_F(HostFactsTest, OpenMpiTakesRootWhenToldTwice) {
    const std::string allow = "OMPI_ALLOW_RUN_AS_ROOT", confirm = "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM";
    EXPECT_FALSE(look_at_host({}, root_).mpirun_takes_root);
    EXPECT_FALSE(look_at_host({{allow, "1"}}, root_).mpirun_takes_root);
    EXPECT_FALSE(look_at_host({{allow, "1"}, {confirm, "yes"}}, root_).mpirun_takes_root);
    EXPECT_TRUE(look_at_host({{allow, "1"}, {confirm, "1"}}, root_).mpirun_takes_root);
    for (const std::string& name : {allow, confirm}) EXPECT_EQ(std::ranges::count(host_variables(), name), 1);
}

TEST_F(HostFactsTest, ThisHost) {
    const HostFacts facts = look_at_host({});
    EXPECT_GE(facts.cpus, facts.cores);
    EXPECT_GT(facts.available_memory_bytes, 0);
    EXPECT_EQ(facts.is_root, geteuid() == 0);
}

}  // namespace
}  // namespace vpp
