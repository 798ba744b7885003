#include "launch/machine_findings.hpp"

#include <gtest/gtest.h>

namespace vpp {
namespace {

using enum FindingLevel;

BuildFacts good_build() {
    return {.vpp = "0.1.0",
            .torch = "2.11.0",
            .pinned_torch = "2.11.0",
            .cpu_capability = "AVX512",
            .wanted_capability = ""};
}

MpiFacts good_mpi() {
    return {.linked_text = "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, repo rev: v4.1.4, May 26, 2022",
            .launcher = "mpirun (Open MPI) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/",
            .thread_multiple = true,
            .trouble = std::nullopt};
}

HostFacts host_with(int cores) {
    HostFacts host;
    host.cores = host.cpus = cores;
    host.free_shared_bytes = int64_t{1} << 30;
    host.temporary_folder = "/tmp";
    return host;
}

LaunchRequest ranks(int number, int threads = 1) {
    LaunchRequest request;
    request.ranks = number;
    request.threads = threads;
    return request;
}

void expect_of_machine(const Finding& finding, FindingLevel level, const std::string& text,
                       const std::string& remedy = "") {
    EXPECT_EQ(finding.level, level) << finding.text;
    EXPECT_EQ(finding.text, text);
    EXPECT_EQ(finding.remedy, remedy);
    EXPECT_EQ(finding.code, level == Bad ? 69 : 0);
}

TEST(MachineFindings, Build) {
    BuildFacts build = good_build();
    expect_of_machine(judge_build(build), Ok, "vpp 0.1.0 with LibTorch 2.11.0, kernels for AVX512");
    build.wanted_capability = "default";
    build.cpu_capability = "DEFAULT";
    expect_of_machine(
        judge_build(build), Note,
        "vpp 0.1.0 with LibTorch 2.11.0; ATEN_CPU_CAPABILITY=default holds its kernels to DEFAULT",
        "unset ATEN_CPU_CAPABILITY, unless other machines with fewer instructions shall have the same bits");
    build.torch = "2.12.0";
    expect_of_machine(judge_build(build), Note, "vpp 0.1.0 with LibTorch 2.12.0, but its tests run with 2.11.0",
                      "scripts/setup && scripts/build takes LibTorch 2.11.0");
}

TEST(MachineFindings, AGoodMpi) {
    const auto findings = judge_mpi(good_mpi(), host_with(8), ranks(4));
    ASSERT_EQ(findings.size(), 1U);
    expect_of_machine(findings[0], Ok, "Open MPI 4.1.4, MPI_THREAD_MULTIPLE, starts 4 ranks here");
}

TEST(MachineFindings, NoMpirun) {
    MpiFacts mpi = good_mpi();
    mpi.launcher = "";
    const auto findings = judge_mpi(mpi, host_with(2), ranks(4));
    ASSERT_EQ(findings.size(), 1U);
    expect_of_machine(findings[0], Bad, "there is no mpirun in PATH, so no ranks can be started",
                      "apt-get install openmpi-bin, or put the bin folder of Open MPI 4.1.4 into PATH");
}

TEST(MachineFindings, AnotherMpirun) {
    MpiFacts mpi = good_mpi();
    mpi.launcher = "HYDRA build details:\n    Version: 4.0.2";
    expect_of_machine(judge_mpi(mpi, host_with(8), ranks(4))[0], Bad,
                      "mpirun is not Open MPI's, with which vpp is linked (4.1.4)",
                      "put the bin folder of Open MPI 4.1.4 first into PATH");
    mpi.launcher = "mpirun (Open MPI) 5.0.1";
    expect_of_machine(judge_mpi(mpi, host_with(8), ranks(4))[0], Note,
                      "Open MPI 4.1.4, MPI_THREAD_MULTIPLE, starts 4 ranks here, but mpirun is of Open MPI 5.0.1",
                      "put the bin folder of Open MPI 4.1.4 first into PATH");
}

TEST(MachineFindings, MpirunThatRefuses) {
    MpiFacts mpi = good_mpi();
    mpi.trouble = "it does not start them within 30 s";
    HostFacts host = host_with(8);
    expect_of_machine(judge_mpi(mpi, host, ranks(4))[0], Bad,
                      "mpirun does not start 4 ranks here: it does not start them within 30 s",
                      "do what it asks for; vpp run --print shows the whole line");
    host.temporary_folder = "/nowhere";
    host.temporary_folder_problem = "is no folder";
    expect_of_machine(judge_mpi(mpi, host, ranks(4))[0], Bad,
                      "mpirun does not start 4 ranks here: it does not start them within 30 s",
                      "export TMPDIR=/var/tmp: Open MPI keeps its session in TMPDIR, but /nowhere is no folder");
}

TEST(MachineFindings, QuirksOfAHost) {
    HostFacts host = host_with(2);
    host.is_root = true;
    host.free_shared_bytes = int64_t{8} << 20;
    host.can_copy_between_processes = false;
    const auto findings = judge_mpi(good_mpi(), host, ranks(4));
    ASSERT_EQ(findings.size(), 5U);
    expect_of_machine(findings[1], Note, "you are root, for whom a bare mpirun starts nothing",
                      "vpp run does it; or mpirun --allow-run-as-root");
    expect_of_machine(findings[2], Note, "a bare mpirun starts no more ranks than cores (2)",
                      "vpp run does it; or mpirun --oversubscribe");
    expect_of_machine(findings[3], Note,
                      "/dev/shm has 8.0 MiB free, and 4 ranks want 16.0 MiB of shared memory for messages",
                      "docker run --shm-size=1g, or mpirun --mca btl_vader_backing_directory /tmp");
    expect_of_machine(findings[4], Note, "processes may not read each other's memory here, as Open MPI would",
                      "vpp run does without; or mpirun --mca btl_vader_single_copy_mechanism none; or docker run "
                      "--cap-add=SYS_PTRACE");
    host.mpirun_takes_root = true;
    EXPECT_EQ(judge_mpi(good_mpi(), host, ranks(4)).size(), 4U) << "a bare mpirun starts ranks of root then";
}

TEST(MachineFindings, CoresAgainstRanksAndThreads) {
    expect_of_machine(judge_cores(host_with(4), ranks(4)), Ok, "4 ranks on 4 cores");
    expect_of_machine(judge_cores(host_with(2), ranks(4)), Note,
                      "4 ranks share 2 cores: right, but slower than with a core for each",
                      "fewer ranks, or more cores");
    expect_of_machine(judge_cores(host_with(4), ranks(4, 2)), Note,
                      "4 ranks of 2 threads share 4 cores: right, but slower than with a core for each",
                      "mesh.threads = 1, which gives other bits");
    expect_of_machine(judge_cores(host_with(64), ranks(4)), Note, "4 ranks use 4 of 64 cores",
                      "mesh.threads = 16 would use 64, with other bits");
    expect_of_machine(judge_cores(host_with(64), ranks(4, 16)), Ok, "4 ranks of 16 threads on 64 cores");
    HostFacts allocated = host_with(2);
    allocated.allocation = "SLURM_JOB_ID";
    expect_of_machine(judge_cores(allocated, ranks(64)), Ok,
                      "64 ranks; where they run is for mpirun to say (SLURM_JOB_ID)");
    allocated.allocated_ranks = 32;
    expect_of_machine(judge_cores(allocated, ranks(64)), Note,
                      "64 ranks, but SLURM_JOB_ID has room for 32 (SLURM_NTASKS), and mpirun starts no more",
                      "sbatch --ntasks=64");
    expect_of_machine(judge_cores(allocated, ranks(32)), Ok,
                      "32 ranks; where they run is for mpirun to say (SLURM_JOB_ID)");
}

TEST(MachineFindings, WordsOfOtherPrograms) {
    EXPECT_EQ(open_mpi_version("mpirun (Open MPI) 4.1.4\n"), "4.1.4");
    EXPECT_EQ(open_mpi_version("HYDRA 4.0"), "");
    EXPECT_EQ(open_mpi_version(""), "");
    EXPECT_EQ(thread_multiple_of("option:threads:\"posix (MPI_THREAD_MULTIPLE: yes, OPAL support: yes)\""), true);
    EXPECT_EQ(thread_multiple_of("option:threads:\"posix (MPI_THREAD_MULTIPLE: no)\""), false);
    EXPECT_EQ(thread_multiple_of("nothing"), std::nullopt);
}

}  // namespace
}  // namespace vpp
