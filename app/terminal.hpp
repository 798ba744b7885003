#pragma once
// What standard output is connected to.

namespace vpp {

struct Terminal {
    int width = 120;      ///< columns
    bool colour = false;  ///< a terminal, and NO_COLOR is not set
};

Terminal output_terminal();

}  // namespace vpp
