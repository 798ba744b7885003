#include "launch/machine_findings.hpp"

#include "base/error.hpp"
#include "base/units.hpp"

namespace vpp {

namespace {

using enum FindingLevel;

// Open MPI's btl_vader_segment_size: each rank has a file of this size in /dev/shm.
constexpr int64_t kSharedBytesOfRank = int64_t{4} << 20;

Finding mpi_problem(std::string text, std::string remedy) {
    return {Bad, "MPI", std::move(text), std::move(remedy), exit_code(ErrorKind::Mesh)};
}

/// Whether ranks start at all.
Finding judge_launch(const MpiFacts& mpi, const HostFacts& host, const LaunchRequest& request) {
    const std::string linked = open_mpi_version(mpi.linked_text), launcher = open_mpi_version(mpi.launcher);
    if (mpi.launcher.empty()) {
        return mpi_problem("there is no mpirun in PATH, so no ranks can be started",
                           "apt-get install openmpi-bin, or put the bin folder of Open MPI " + linked + " into PATH");
    }
    if (launcher.empty()) {
        return mpi_problem("mpirun is not Open MPI's, with which vpp is linked (" + linked + ")",
                           "put the bin folder of Open MPI " + linked + " first into PATH");
    }
    if (mpi.trouble) {
        const bool is_session = !host.temporary_folder_problem.empty();
        return mpi_problem("mpirun does not start " + counted_text(request.ranks, "rank") + " here: " + *mpi.trouble,
                           is_session ? "export TMPDIR=/var/tmp: Open MPI keeps its session in TMPDIR, but " +
                                            host.temporary_folder.string() + " " + host.temporary_folder_problem
                                      : "do what it asks for; vpp run --print shows the whole line");
    }
    const std::string found = "Open MPI " + linked +
                              (mpi.thread_multiple.value_or(false) ? ", MPI_THREAD_MULTIPLE" : "") + ", starts " +
                              counted_text(request.ranks, "rank") + " here";
    if (launcher != linked) {
        return {Note, "MPI", found + ", but mpirun is of Open MPI " + launcher,
                "put the bin folder of Open MPI " + linked + " first into PATH"};
    }
    if (mpi.thread_multiple.has_value() && !*mpi.thread_multiple) {
        return {Note, "MPI", found + ", built without MPI_THREAD_MULTIPLE", "take Debian's libopenmpi3, which has it"};
    }
    return {Ok, "MPI", found, ""};
}

void judge_shared_memory(const HostFacts& host, const LaunchRequest& request, std::vector<Finding>& findings) {
    if (request.ranks == 1) return;
    const int64_t needed = kSharedBytesOfRank * request.ranks, free = host.free_shared_bytes.value_or(0);
    if (free >= needed) return;
    findings.push_back(
        {Note, "MPI",
         "/dev/shm has " + bytes_text(free) + " free, and " + counted_text(request.ranks, "rank") + " want " +
             bytes_text(needed) + " of shared memory for messages",
         "docker run --shm-size=1g, or mpirun --mca btl_vader_backing_directory " + host.temporary_folder.string()});
}

}  // namespace

std::string open_mpi_version(std::string_view text) {
    const size_t name = text.find("Open MPI");
    const size_t begin = text.find_first_of("0123456789", name == text.npos ? text.size() : name);
    if (begin == text.npos) return "";
    return std::string(text.substr(begin, text.find_first_not_of("0123456789.", begin) - begin));
}

std::optional<bool> thread_multiple_of(std::string_view ompi_info) {
    const std::string_view label = "MPI_THREAD_MULTIPLE: ";
    const size_t found = ompi_info.find(label);
    if (found == ompi_info.npos) return std::nullopt;
    return ompi_info.substr(found + label.size()).starts_with("yes");
}

Finding judge_build(const BuildFacts& build) {
    const std::string text = "vpp " + build.vpp + " with LibTorch " + build.torch;
    if (build.torch != build.pinned_torch) {
        return {Note, "build", text + ", but its tests run with " + build.pinned_torch,
                "scripts/setup && scripts/build takes LibTorch " + build.pinned_torch};
    }
    if (!build.wanted_capability.empty()) {
        return {
            Note, "build",
            text + "; ATEN_CPU_CAPABILITY=" + build.wanted_capability + " holds its kernels to " + build.cpu_capability,
            "unset ATEN_CPU_CAPABILITY, unless other machines with fewer instructions shall have the same bits"};
    }
    return {Ok, "build", text + ", kernels for " + build.cpu_capability, ""};
}

std::vector<Finding> judge_mpi(const MpiFacts& mpi, const HostFacts& host, const LaunchRequest& request) {
    std::vector<Finding> findings{judge_launch(mpi, host, request)};
    if (findings.front().level == Bad && !mpi.trouble) return findings;
    if (host.is_root && !host.mpirun_takes_root) {
        findings.push_back({Note, "MPI", "you are root, for whom a bare mpirun starts nothing",
                            "vpp run does it; or mpirun --allow-run-as-root"});
    }
    if (is_oversubscribed(request, host)) {
        findings.push_back({Note, "MPI",
                            "a bare mpirun starts no more ranks than cores (" + std::to_string(host.cores) + ")",
                            "vpp run does it; or mpirun --oversubscribe"});
    }
    judge_shared_memory(host, request, findings);
    if (!host.can_copy_between_processes && request.ranks > 1) {
        findings.push_back({Note, "MPI", "processes may not read each other's memory here, as Open MPI would",
                            "vpp run does without; or mpirun --mca btl_vader_single_copy_mechanism none; or docker "
                            "run --cap-add=SYS_PTRACE"});
    }
    return findings;
}

Finding judge_cores(const HostFacts& host, const LaunchRequest& request) {
    const int64_t wanted = int64_t{request.ranks} * request.threads;
    const std::string job = counted_text(request.ranks, "rank") +
                            (request.threads > 1 ? " of " + counted_text(request.threads, "thread") : "");
    if (host.allocated_ranks && request.ranks > *host.allocated_ranks) {
        return {Note, "cores",
                job + ", but " + host.allocation + " has room for " + std::to_string(*host.allocated_ranks) +
                    " (SLURM_NTASKS), and mpirun starts no more",
                "sbatch --ntasks=" + std::to_string(request.ranks)};
    }
    if (is_placed_by_mpirun(request, host)) {
        return {Ok, "cores", job + "; where they run is for mpirun to say (" + host.allocation + ")", ""};
    }
    const std::string cores = counted_text(host.cores, "core");
    if (wanted > host.cpus) {
        return {Note, "cores", job + " share " + cores + ": right, but slower than with a core for each",
                request.threads > 1 ? "mesh.threads = 1, which gives other bits" : "fewer ranks, or more cores"};
    }
    const int more = host.cores / request.ranks;
    if (more > request.threads) {
        return {Note, "cores", job + " use " + std::to_string(std::min<int64_t>(wanted, host.cores)) + " of " + cores,
                "mesh.threads = " + std::to_string(more) + " would use " + std::to_string(more * request.ranks) +
                    ", with other bits"};
    }
    return {Ok, "cores", job + " on " + cores, ""};
}

}  // namespace vpp
