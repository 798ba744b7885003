#pragma once
// What standard output is connected to.

namespace vpp {

struct Terminal {
    bool is_terminal = false;  ///< and it knows its width
    int width = 120;           ///< columns
    bool colour = false;       ///< a terminal, and NO_COLOR is not set
};

/// mpirun puts a terminal of its own between a rank and whatever it writes to: one without a width when that is a pipe
/// or a file (Open MPI 4.1). VPP_TERMINAL_WIDTH says what is at the far end where nothing else can.
Terminal output_terminal();

/// While it lives, jobs that this process starts know the width of its terminal, to which it passes on what they print.
class TerminalForJobs {
  public:
    TerminalForJobs();
    ~TerminalForJobs();
    TerminalForJobs(const TerminalForJobs&) = delete;
    TerminalForJobs& operator=(const TerminalForJobs&) = delete;

  private:
    bool is_told_;  ///< by this object
};

/// Whether a live line may be on the terminal, for whoever ends the process without its destructors.
void set_live_line(bool is_there);
/// Takes it off until the next step draws it again. Safe in a signal handler.
void take_live_line_off();

}  // namespace vpp
