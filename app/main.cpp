// Parse, run what was chosen, turn an Error into one line and an exit code.
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "app/command_line.hpp"
#include "base/error.hpp"

namespace {

int run(int argc, char** argv) {
    try {
        return vpp::parse_command_line(argc, argv)();
    } catch (const vpp::Error& error) {
        std::cerr << "vpp: error: " << error.what() << std::endl;
        return vpp::exit_code(error.kind());
    } catch (const std::exception& error) {
        std::cerr << "vpp: error: this is a bug in vpp: " << error.what() << std::endl;
        return vpp::exit_code(vpp::ErrorKind::Bug);
    }
}

}  // namespace

int main(int argc, char** argv) {
    const int code = run(argc, argv);
    std::cout.flush();
    std::fflush(nullptr);
    // Without the destructors of globals: LibTorch takes each op from its tables again, a third of a short command.
    std::_Exit(code);
}
