#include <iostream>

#include <torch/version.h>

#include "app/commands/commands.hpp"
#include "comm/mpi_session.hpp"

namespace vpp {

int run_version() {
    std::cout << "vpp " << VPP_VERSION << "\nLibTorch " << TORCH_VERSION << "\n"
              << mpi_library_version() << "\ncompiler " << __VERSION__ << std::endl;
    return 0;
}

}  // namespace vpp
