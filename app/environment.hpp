#pragma once
// The environment, read once and handed on as values; nothing below app looks at it.
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace vpp {

/// Those of these variables that are set.
std::map<std::string, std::string> environment_of(const std::vector<std::string>& names);

/// The names of those that are set, in order.
std::vector<std::string> variables_beginning_with(const std::string& begin);

/// For libraries that look for it in this process.
void set_unless_set(const char* variable, const char* value);
/// So that they do not find it; gives whether it was set.
bool unset(const char* variable);

/// Whether MPI takes messages from cards (comm/mpi_session.hpp), as this environment has it.
bool mpi_moves_card_memory();

/// Whether the host waits for every kernel of a card (kLaunchBlockingVariable, device/device.hpp).
bool waits_for_kernels();

/// The host that NCCL was told this process is on (kNcclHostVariable, comm/transport_kinds.hpp); empty: none.
std::string nccl_host();

/// Whether libraries were loaded into this process before its own (LD_PRELOAD).
bool has_preloaded_libraries();

/// How this program was called: argv[0].
std::string program_name();

/// A program that lies in the same folder as this one, symbolic links followed.
std::string program_beside(const std::string& name);

/// Whether `vpp run` has started this job, and signals therefore go to it; and what it does to say so.
bool is_started_by_run();
void say_started_by_run();
/// What `vpp run` and its ranks, and nobody else, call their job; empty: of no such job.
std::string job_of_run();

/// VPP_STOP_POINT=RANK:N: where a save is to die, for tests of crash safety.
struct StopPointNumber {
    int rank = 0;
    int number = 0;  ///< counted from 1 over all stop points that the rank reaches; 0: nobody dies, all are listed
};
std::optional<StopPointNumber> stop_point_number();

/// VPP_TERMINAL_WIDTH=COLUMNS: what rank 0 writes ends on a terminal of that width, whatever lies between; 0: on
/// none. Empty when it is not set or no number.
std::optional<int> terminal_width_told();
/// Sets it for this process and those that it starts; empty: unsets it.
void tell_terminal_width(std::optional<int> width);

/// TERM=dumb: a terminal that knows no escapes.
bool is_terminal_dumb();

/// NO_COLOR is set to anything (no-color.org).
bool is_colour_unwanted();

}  // namespace vpp
