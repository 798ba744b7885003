#pragma once
// Signals that end a training: SIGUSR1, SIGTERM, SIGINT (Ctrl-C) and SIGHUP (a closed terminal; not where nohup has it
// ignored) ask it to save and stop. A second SIGINT ends the process at once with exit code 130.
namespace vpp::stop_signals {

/// From now on these signals are only noted. To be called before other threads start.
void listen();

/// From now on a job goes on when nobody reads its output any more (SIGPIPE); what was lost is told at its end.
void outlive_readers();

/// Whether one has come.
bool came();

/// Whether SIGTERM has come: mpirun sends it to all ranks of a job that it ends, after an abort of one of them too.
bool is_being_ended();

}  // namespace vpp::stop_signals
