#include "app/environment.hpp"

#include <cstdio>
#include <cstdlib>

namespace vpp {

std::map<std::string, std::string> mpi_environment() {
    std::map<std::string, std::string> found;
    for (const char* name :
         {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"}) {
        if (const char* value = std::getenv(name)) found[name] = value;
    }
    return found;
}

std::optional<StopPointNumber> stop_point_number() {
    const char* value = std::getenv("VPP_STOP_POINT");
    StopPointNumber wanted;
    if (!value || std::sscanf(value, "%d:%d", &wanted.rank, &wanted.number) != 2) return std::nullopt;
    return wanted;
}

bool is_colour_unwanted() {
    const char* value = std::getenv("NO_COLOR");
    return value && *value;
}

}  // namespace vpp
