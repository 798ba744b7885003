#pragma once
// MPI from start to end of the process, and what mpirun tells before MPI starts. Messages are the business of
// comm/mpi_transport.hpp; nothing else calls MPI.
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "comm/watchdog.hpp"

namespace vpp {

/// What mpirun or Slurm's srun tells a process through its environment.
struct LaunchInfo {
    int rank = 0;
    int size = 1;
    int local_rank = 0;
    int local_size = 1;
    bool by_srun = false;  ///< a task of srun, with no mpirun between
    bool can_join = true;  ///< false: srun offers MPI no way to the other tasks
};

/// Environment variables that launch_info reads.
const std::vector<std::string>& launch_variables();

/// The rank before MPI_Init. Empty when the process was started neither by Open MPI's mpirun nor as one of several
/// tasks by srun; the shell of srun --pty is no task.
/// Requires: `environment` holds those of launch_variables() that are set.
/// Throws:   Error{Mesh} when they contradict each other or are no numbers.
std::optional<LaunchInfo> launch_info(const std::map<std::string, std::string>& environment);

/// That processes which were started together are one job; `mpi_size`: the ranks that MPI has found, empty before it
/// starts. Without PMIx each task of srun would train alone.
/// Throws: Error{Mesh}.
void check_is_one_job(const LaunchInfo& launch, std::optional<int> mpi_size);

struct MpiSessionOptions {
    Watchdog* watchdog = nullptr;  ///< watches MPI's start and end; outlives the session
    double start_seconds = 120;    ///< deadline of MPI's start-up
    double end_seconds = 60;       ///< deadline of MPI's end: the other ranks may still work
    int launch_rank = 0;           ///< this rank as LaunchInfo has it: ranks that cannot start end one after the other
};

/// Invariant: MPI runs while it lives; one per process, ever. It ends MPI only on a good end: never while an exception
/// unwinds past it, and never after keep_open(). Let the ranks meet before (barrier of comm/collective.hpp): when one
/// aborted the job while another was in MPI_Finalize, mpirun (Open MPI 4.1.4) itself crashed or hung in 5 of 40 runs.
class MpiSession {
  public:
    explicit MpiSession(const MpiSessionOptions& options = {});
    ~MpiSession();
    MpiSession(const MpiSession&) = delete;
    MpiSession& operator=(const MpiSession&) = delete;

    int rank() const { return rank_; }
    int size() const { return size_; }
    int local_rank() const { return local_rank_; }
    /// Ranks on this host.
    int local_size() const { return local_size_; }
    /// Cores that the ranks of this host may use together.
    int local_cores() const { return local_cores_; }
    /// Cores of this host.
    int host_cores() const { return host_cores_; }

    /// From now on the destructor leaves MPI as it is: after an error the other ranks would wait for this one.
    void keep_open() noexcept { keep_open_ = true; }

    /// Ends the whole job with this exit code; from any thread. Ends this process too, within seconds even when mpirun
    /// does not answer, so it does not return unless MPI itself fails: call _exit behind it.
    void abort(int code) noexcept;

    /// Held around every MPI call (MPI is started with MPI_THREAD_SERIALIZED).
    std::timed_mutex& mutex() { return mutex_; }

  private:
    void look_at_host();

    MpiSessionOptions options_;
    std::timed_mutex mutex_;
    int rank_ = 0;
    int size_ = 1;
    int local_rank_ = 0;
    int local_size_ = 1;
    int local_cores_ = 1;
    int host_cores_ = 1;
    int uncaught_at_start_ = 0;
    bool keep_open_ = false;
};

/// "Open MPI v4.1.4, ..."; may be asked before MPI starts.
std::string mpi_library_version();

/// What turns off that Open MPI looks where memory lies: mpirun --mca opal_cuda_support 0 sets it in every rank.
inline constexpr const char* kMpiCudaVariable = "OMPI_MCA_opal_cuda_support";

/// Whether the MPI library says that it moves memory of CUDA devices by itself ("CUDA-aware"), and nobody has turned
/// that off; may be asked before MPI starts.
/// Requires: `environment` holds kMpiCudaVariable if it is set.
bool mpi_moves_device_memory(const std::map<std::string, std::string>& environment);

namespace detail {

/// Throws Error{RankLost} with MPI's own text when an MPI call did not succeed.
void check_mpi(int result, const char* call);

}  // namespace detail

}  // namespace vpp
