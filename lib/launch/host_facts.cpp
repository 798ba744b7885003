#include "launch/host_facts.hpp"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>

#include "base/error.hpp"

namespace vpp {

namespace fs = std::filesystem;

namespace {

/// The CPUs that this process may use.
std::vector<int> usable_cpus() {
    cpu_set_t set;
    CPU_ZERO(&set);
    std::vector<int> cpus;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return {0};
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
    }
    return cpus;
}

std::string first_line(const fs::path& path) {
    std::string line;
    std::ifstream file(path);
    std::getline(file, line);
    return line;
}

std::optional<int64_t> number_in(const fs::path& path) {
    int64_t number = 0;
    std::ifstream file(path);
    if (file >> number) return number;
    return std::nullopt;
}

/// The value of a line "MemAvailable:   123 kB".
std::optional<int64_t> memory_line(const fs::path& path, const std::string& name) {
    std::ifstream file(path);
    for (std::string word; file >> word;) {
        int64_t kibibytes = 0;
        if (word == name && file >> kibibytes) return kibibytes * 1024;
    }
    return std::nullopt;
}

/// How a version of cgroups tells the memory of a group.
struct GroupFiles {
    const char* controllers;  ///< of its line in /proc/self/cgroup
    const char* folder;
    const char* limit;
    const char* used;
    const char* cache;   ///< the word in memory.stat for files of the page cache
    const char* shared;  ///< for what of it lies in tmpfs, and cannot be given up
};

constexpr std::array<GroupFiles, 2> kGroupFiles{{{"", "sys/fs/cgroup", "memory.max", "memory.current", "file", "shmem"},
                                                 {"memory", "sys/fs/cgroup/memory", "memory.limit_in_bytes",
                                                  "memory.usage_in_bytes", "total_cache", "total_shmem"}}};

/// Of a group without a limit the largest numbers that there are.
struct GroupMemory {
    int64_t limit_bytes = std::numeric_limits<int64_t>::max();
    int64_t rest_bytes =
        std::numeric_limits<int64_t>::max();  ///< files of the page cache, but of tmpfs, are given up for others
};

GroupMemory memory_of(const fs::path& folder, const GroupFiles& files) {
    const auto limit = number_in(folder / files.limit), used = number_in(folder / files.used);
    if (!limit || !used) return {};  // "max" is no number
    int64_t cache = 0, shared = 0;
    std::ifstream statistics(folder / "memory.stat");
    for (std::string word; statistics >> word;) {
        if (word == files.cache) statistics >> cache;
        if (word == files.shared) statistics >> shared;
    }
    return {*limit, std::max<int64_t>(0, *limit - *used + std::max<int64_t>(0, cache - shared))};
}

/// The path of this process's group, "/" where it is not told: of lines "4:memory:/slurm/job_7" and "0::/user.slice".
fs::path own_group(const fs::path& root, const GroupFiles& files) {
    std::ifstream file(root / "proc/self/cgroup");
    for (std::string line; std::getline(file, line);) {
        const size_t first = line.find(':'), second = line.find(':', first + 1);
        if (second == std::string::npos) continue;
        if (line.substr(first + 1, second - first - 1) == files.controllers) return line.substr(second + 1);
    }
    return "/";
}

/// The least of this process's group and of those that hold it. In a container those further out are not to be seen.
GroupMemory cgroup_memory(const fs::path& root) {
    GroupMemory least;
    for (const GroupFiles& files : kGroupFiles) {
        for (fs::path group = own_group(root, files).lexically_normal();; group = group.parent_path()) {
            const GroupMemory memory = memory_of(root / files.folder / group.relative_path(), files);
            least.limit_bytes = std::min(least.limit_bytes, memory.limit_bytes);
            least.rest_bytes = std::min(least.rest_bytes, memory.rest_bytes);
            if (!group.has_relative_path()) break;
        }
    }
    return least;
}

/// Of what is told; 0 when nothing is.
int64_t smaller(std::optional<int64_t> of_host, int64_t of_group) {
    const int64_t least = std::min(of_host.value_or(of_group), of_group);
    return least == GroupMemory().limit_bytes ? 0 : least;
}

/// Whether a process may read the memory of a sibling, as ranks of one host do: a child tries it on this process.
bool can_read_other_process() {
    int source = 1, target = 0;
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);  // as Open MPI does; only Yama knows it
    const pid_t parent = getpid(), child = fork();
    if (child == 0) {
        iovec local{&target, sizeof target}, remote{&source, sizeof source};
        _exit(process_vm_readv(parent, &local, 1, &remote, 1, 0) == sizeof source ? 0 : 1);
    }
    int status = 1;
    if (child < 0 || waitpid(child, &status, 0) != child) return true;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::optional<int64_t> free_bytes(const fs::path& folder) {
    std::error_code error;
    const fs::space_info space = fs::space(folder, error);
    if (error) return std::nullopt;
    return static_cast<int64_t>(std::min<uintmax_t>(space.available, INT64_MAX));
}

std::string why_not_writable(const fs::path& folder) {
    std::error_code error;
    if (!fs::is_directory(folder, error)) return "is no folder";
    if (access(folder.c_str(), W_OK | X_OK) != 0) return "cannot be written";
    return free_bytes(folder).value_or(INT64_MAX) < (1 << 20) ? "is full" : "";
}

std::string value_of(const std::map<std::string, std::string>& environment, const std::string& name) {
    const auto found = environment.find(name);
    return found == environment.end() ? "" : found->second;
}

constexpr const char* kAllocatedRanks = "SLURM_NTASKS";
const std::vector<std::string> kAllocations{"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"};
const std::vector<std::string> kSessionFolders{"OMPI_MCA_orte_tmpdir_base", "TMPDIR"};
const std::vector<std::string> kRootAllowed{"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"};

}  // namespace

namespace detail {

int count_cores(const std::vector<int>& cpus, const fs::path& root) {
    std::set<std::string> cores;
    for (int cpu : cpus) {
        const fs::path folder = root / "sys/devices/system/cpu" / ("cpu" + std::to_string(cpu)) / "topology";
        const std::string package = first_line(folder / "physical_package_id"), core = first_line(folder / "core_id");
        cores.insert(core.empty() ? "cpu " + std::to_string(cpu) : package + " " + core);
    }
    return std::max(1, static_cast<int>(cores.size()));
}

int64_t total_memory(const fs::path& root) {
    return smaller(memory_line(root / "proc/meminfo", "MemTotal:"), cgroup_memory(root).limit_bytes);
}

int64_t available_memory(const fs::path& root) {
    return smaller(memory_line(root / "proc/meminfo", "MemAvailable:"), cgroup_memory(root).rest_bytes);
}

}  // namespace detail

std::vector<std::string> find_gpus(const fs::path& root) {
    std::vector<std::string> gpus;
    std::error_code error;
    for (const auto& card : fs::directory_iterator(root / "proc/driver/nvidia/gpus", error)) {
        const std::string line = first_line(card.path() / "information");  // "Model: \t\t NVIDIA H100"
        const size_t begin = line.find_first_not_of(" \t", line.find(':') + 1);
        gpus.push_back(begin == std::string::npos ? "NVIDIA" : printable(line.substr(begin)));
    }
    return gpus;
}

const std::vector<std::string>& host_variables() {
    static const std::vector<std::string> names = [] {
        std::vector<std::string> all = kAllocations;
        all.emplace_back(kAllocatedRanks);
        all.insert(all.end(), kSessionFolders.begin(), kSessionFolders.end());
        all.insert(all.end(), kRootAllowed.begin(), kRootAllowed.end());
        return all;
    }();
    return names;
}

int64_t own_memory_bytes(const fs::path& root) {
    return memory_line(root / "proc/self/status", "RssAnon:").value_or(0);
}

HostFacts look_at_host(const std::map<std::string, std::string>& environment, const fs::path& root) {
    HostFacts facts;
    const std::vector<int> cpus = usable_cpus();
    facts.cpus = std::max(1, static_cast<int>(cpus.size()));
    facts.cores = detail::count_cores(cpus, root);
    facts.is_root = geteuid() == 0;
    facts.mpirun_takes_root =
        std::ranges::all_of(kRootAllowed, [&](const std::string& name) { return value_of(environment, name) == "1"; });
    facts.can_copy_between_processes = can_read_other_process();
    for (const std::string& name : kAllocations) {
        if (facts.allocation.empty() && !value_of(environment, name).empty()) facts.allocation = name;
    }
    if (std::istringstream number(value_of(environment, kAllocatedRanks)); !facts.allocation.empty()) {
        int ranks = 0;
        if (number >> ranks && ranks > 0) facts.allocated_ranks = ranks;
    }
    facts.memory_bytes = detail::total_memory(root);
    facts.available_memory_bytes = detail::available_memory(root);
    facts.free_shared_bytes = free_bytes(root / "dev/shm");
    facts.temporary_folder = "/tmp";
    for (auto name = kSessionFolders.rbegin(); name != kSessionFolders.rend(); ++name) {
        if (const std::string folder = value_of(environment, *name); !folder.empty()) facts.temporary_folder = folder;
    }
    facts.temporary_folder_problem = why_not_writable(facts.temporary_folder);
    facts.gpus = find_gpus(root);
    return facts;
}

}  // namespace vpp
