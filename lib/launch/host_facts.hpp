#pragma once
// What a host has for the ranks that run on it: cores, memory, room for shared memory, graphics cards, and what Open
// MPI finds there. Gathered from /proc, /sys and a few system calls; judged elsewhere.
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace vpp {

struct HostFacts {
    int cores = 1;  ///< that this process may use; threads of one core count once
    int cpus = 1;   ///< hardware threads that this process may use
    bool is_root = false;
    bool mpirun_takes_root = false;            ///< the environment says so to Open MPI
    bool can_copy_between_processes = true;    ///< process_vm_readv: how ranks of one host hand over large messages
    std::string allocation;                    ///< the variable that tells of a batch system: "SLURM_JOB_ID"; or empty
    std::optional<int> allocated_ranks;        ///< that it has room for, where it says so: SLURM_NTASKS
    int64_t memory_bytes = 0;                  ///< of the host, or of the cgroup if that is less
    int64_t available_memory_bytes = 0;        ///< that can still be had, also by the cgroup's limit
    std::optional<int64_t> free_shared_bytes;  ///< of /dev/shm; empty: there is none
    std::filesystem::path temporary_folder;    ///< where Open MPI keeps its session, by default TMPDIR
    std::string temporary_folder_problem;      ///< why nothing can be written there; empty: it can
    std::vector<std::string> gpus;             ///< names of NVIDIA's cards
};

/// Environment variables that HostFacts depend on.
const std::vector<std::string>& host_variables();

/// Looks at this host. `environment` holds those of host_variables() that are set; `root` is "/", or in tests a tree
/// with proc and sys.
HostFacts look_at_host(const std::map<std::string, std::string>& environment, const std::filesystem::path& root = "/");

/// Memory that this process has for itself, without what it shares with others of its kind; 0 where it is not told.
int64_t own_memory_bytes(const std::filesystem::path& root = "/");

/// "NVIDIA H100", one a card, as the driver tells them.
std::vector<std::string> find_gpus(const std::filesystem::path& root = "/");

namespace detail {

/// Cores of these CPUs: those of sys/devices/system/cpu/cpuN/topology that differ; as many as CPUs where it is silent.
int count_cores(const std::vector<int>& cpus, const std::filesystem::path& root);

/// MemTotal, or the least limit of the cgroups that this process is in; 0 when neither is told.
int64_t total_memory(const std::filesystem::path& root);

/// MemAvailable, or the least that one of the cgroups leaves; 0 when neither is told.
int64_t available_memory(const std::filesystem::path& root);

}  // namespace detail

}  // namespace vpp
