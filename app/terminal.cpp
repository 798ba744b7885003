#include "app/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include "app/environment.hpp"

namespace vpp {

Terminal output_terminal() {
    Terminal terminal;
    if (!isatty(STDOUT_FILENO)) return terminal;
    terminal.colour = !is_colour_unwanted();
    winsize size{};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) terminal.width = size.ws_col;
    return terminal;
}

}  // namespace vpp
