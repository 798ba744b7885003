#include "comm/mpi_session.hpp"

#include <mpi.h>
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <exception>
#include <system_error>
#include <thread>

#include "base/error.hpp"
#include "base/units.hpp"

namespace vpp {

namespace {

std::optional<int> number_of(const std::map<std::string, std::string>& environment, const std::string& name) {
    const auto found = environment.find(name);
    if (found == environment.end()) return std::nullopt;
    const std::string& text = found->second;
    int number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || number < 0) {
        throw Error(ErrorKind::Mesh, "the environment variable " + name + " is no rank or count (got \"" +
                                         printable(text.substr(0, 40)) + "\"); try to start with mpirun");
    }
    return number;
}

void check_place(const char* what, int rank, int size) {
    if (rank < size) return;
    throw Error(ErrorKind::Mesh, std::string("mpirun's environment contradicts itself: ") + what + ' ' +
                                     std::to_string(rank) + " of " + std::to_string(size) +
                                     "; try to start with mpirun");
}

// Any of them: srun --mpi=pmix, pmi2.
const std::vector<std::string> kPmiVariables{"PMIX_RANK", "PMI_RANK", "PMI_FD"};

std::optional<LaunchInfo> task_of_srun(const std::map<std::string, std::string>& environment) {
    const auto rank = number_of(environment, "SLURM_PROCID");
    const auto size = number_of(environment, "SLURM_STEP_NUM_TASKS");
    if (!rank || size.value_or(1) == 1 || environment.contains("SLURM_PTY_PORT")) return std::nullopt;
    LaunchInfo info{*rank, *size, 0, 1};
    info.local_rank = number_of(environment, "SLURM_LOCALID").value_or(0);
    info.local_size = info.local_rank + 1;
    info.by_srun = true;
    info.can_join = std::ranges::any_of(kPmiVariables, [&](const auto& name) { return environment.contains(name); });
    if (info.rank >= info.size) {
        throw Error(ErrorKind::Mesh, "Slurm's environment contradicts itself: SLURM_PROCID " +
                                         std::to_string(info.rank) + " of SLURM_STEP_NUM_TASKS " +
                                         std::to_string(info.size) + "; try to start with srun");
    }
    return info;
}

std::string late_text(const std::string& what, double seconds) {
    return what + " did not finish within " + duration_text(seconds) +
           "; see that every rank was started, lives, and reaches the others over the network "
           "(vpp run --interface names it)";
}

/// How much later than rank 0 the start-up of rank 1, and of all others, is given up. Rank 0 speaks for them and ends
/// the job; rank 1 does where rank 0 is what they wait for. When ranks of one job exit together while they connect,
/// mpirun (Open MPI 4.1.4) itself hung in 5 of 508 jobs, and in none of 1362 where they came one after the other.
double turn_seconds(int launch_rank) {
    constexpr double kTurnSeconds = 0.4;
    return kTurnSeconds * std::min(launch_rank, 2);
}

/// MPI_Abort waits for mpirun's answer without a bound.
void end_process_after(std::chrono::seconds time, int code) noexcept {
    try {
        std::thread([time, code] {
            std::this_thread::sleep_for(time);
            _exit(code);
        }).detach();
    } catch (const std::system_error&) {
        // No thread is to be had: MPI_Abort then has to answer.
    }
}

}  // namespace

namespace detail {

void check_mpi(int result, const char* call) {
    if (result == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(result, text, &length);
    throw Error(ErrorKind::RankLost, std::string(call) + " failed: " + printable(text));
}

}  // namespace detail

using detail::check_mpi;

const std::vector<std::string>& launch_variables() {
    static const std::vector<std::string> names = [] {
        std::vector<std::string> all = kPmiVariables;
        for (const char* of_mpirun : {"RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE"}) {
            all.push_back(std::string("OMPI_COMM_WORLD_") + of_mpirun);
        }
        for (const char* of_srun : {"PROCID", "STEP_NUM_TASKS", "LOCALID", "PTY_PORT"}) {
            all.push_back(std::string("SLURM_") + of_srun);
        }
        return all;
    }();
    return names;
}

void check_is_one_job(const LaunchInfo& launch, std::optional<int> mpi_size) {
    if (!launch.can_join) {
        throw Error(ErrorKind::Mesh, "srun has started " + std::to_string(launch.size) +
                                         " tasks without PMIx, and MPI would take each of them for a job of its own; "
                                         "try srun --mpi=pmix, or vpp run in the allocation");
    }
    if (mpi_size.value_or(launch.size) == launch.size) return;
    throw Error(ErrorKind::Mesh, "MPI has joined other ranks than were started (got " + std::to_string(*mpi_size) +
                                     ", expected " + std::to_string(launch.size) +
                                     "): vpp's Open MPI and what has started it do not speak the same PMI; try srun "
                                     "--mpi=pmix, or vpp run in the allocation");
}

std::optional<LaunchInfo> launch_info(const std::map<std::string, std::string>& environment) {
    const auto rank = number_of(environment, "OMPI_COMM_WORLD_RANK");
    const auto size = number_of(environment, "OMPI_COMM_WORLD_SIZE");
    if (!rank || !size) return task_of_srun(environment);
    LaunchInfo info{*rank, *size, 0, 1};
    info.local_rank = number_of(environment, "OMPI_COMM_WORLD_LOCAL_RANK").value_or(0);
    info.local_size = number_of(environment, "OMPI_COMM_WORLD_LOCAL_SIZE").value_or(info.local_rank + 1);
    check_place("rank", info.rank, info.size);
    check_place("local rank", info.local_rank, info.local_size);
    return info;
}

MpiSession::MpiSession(const MpiSessionOptions& options)
    : options_(options), uncaught_at_start_(std::uncaught_exceptions()) {
    Watchdog::Phase phase;
    if (options.watchdog != nullptr) {
        phase = options.watchdog->begin(late_text("MPI's start-up", options.start_seconds),
                                        options.start_seconds + turn_seconds(options.launch_rank));
    }
    int started = 0;
    MPI_Initialized(&started);
    check(started == 0, "one MPI session per process");
    int level = MPI_THREAD_SINGLE;
    check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level), "MPI_Init_thread");
    if (level < MPI_THREAD_SERIALIZED) {
        throw Error(ErrorKind::Mesh, "this MPI library cannot be called from two threads in turn (got thread level " +
                                         std::to_string(level) + ", expected MPI_THREAD_SERIALIZED); try Open MPI 4");
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
    check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
    look_at_host();
}

void MpiSession::look_at_host() {
    MPI_Comm host = MPI_COMM_NULL;
    check_mpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &host),
              "MPI_Comm_split_type");
    check_mpi(MPI_Comm_rank(host, &local_rank_), "MPI_Comm_rank");
    check_mpi(MPI_Comm_size(host, &local_size_), "MPI_Comm_size");
    // mpirun may bind each rank to cores of its own: what counts is the union.
    cpu_set_t cores;
    CPU_ZERO(&cores);
    sched_getaffinity(0, sizeof(cores), &cores);
    check_mpi(MPI_Allreduce(MPI_IN_PLACE, &cores, sizeof(cores), MPI_BYTE, MPI_BOR, host), "MPI_Allreduce");
    local_cores_ = CPU_COUNT(&cores);
    host_cores_ = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
    check_mpi(MPI_Comm_free(&host), "MPI_Comm_free");
}

std::string mpi_library_version() {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    detail::check_mpi(MPI_Get_library_version(text, &length), "MPI_Get_library_version");
    return printable(text);  // Open MPI counts the closing zero in its length
}

bool mpi_moves_device_memory(const std::map<std::string, std::string>& environment) {
    const auto wanted = environment.find(kMpiCudaVariable);
    const std::vector<std::string> words_for_no{"0", "false", "f", "no", "n", "disabled"};
    if (wanted != environment.end() && std::ranges::count(words_for_no, wanted->second) > 0) return false;
#ifdef MPIX_CUDA_AWARE_SUPPORT
    return MPIX_Query_cuda_support() == 1;
#else
    return false;
#endif
}

MpiSession::~MpiSession() {
    if (keep_open_ || std::uncaught_exceptions() > uncaught_at_start_) return;
    Watchdog::Phase phase;
    if (options_.watchdog != nullptr) {
        phase = options_.watchdog->begin(
            late_text("rank " + std::to_string(rank_) + " has finished its work, but the end of MPI",
                      options_.end_seconds),
            options_.end_seconds);
    }
    const std::lock_guard lock(mutex_);
    MPI_Finalize();
}

void MpiSession::abort(int code) noexcept {
    keep_open_ = true;
    end_process_after(std::chrono::seconds(5), code);
    // A thread that is stuck inside MPI keeps the lock for ever; the job has to end all the same.
    const bool locked = mutex_.try_lock_for(std::chrono::milliseconds(200));
    MPI_Abort(MPI_COMM_WORLD, code);
    if (locked) mutex_.unlock();
}

}  // namespace vpp
