#pragma once
// The environment, read once and handed on as values; nothing below app looks at it.
#include <map>
#include <string>

namespace vpp {

/// What mpirun tells its processes: the OMPI_COMM_WORLD_* variables that are set.
std::map<std::string, std::string> mpi_environment();

/// NO_COLOR is set to anything (no-color.org).
bool is_colour_unwanted();

}  // namespace vpp
