#include "app/environment.hpp"

#include <cstdio>
#include <cstdlib>
#include <string_view>

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

std::optional<int> terminal_width_told() {
    const char* value = std::getenv("VPP_TERMINAL_WIDTH");
    int width = 0;
    char more = 0;
    const bool is_number = value && std::sscanf(value, "%5d%c", &width, &more) == 1 && width >= 0;
    return is_number ? std::optional(width) : std::nullopt;
}

bool is_terminal_dumb() {
    const char* value = std::getenv("TERM");
    return value && std::string_view(value) == "dumb";
}

bool is_colour_unwanted() {
    const char* value = std::getenv("NO_COLOR");
    return value && *value;
}

}  // namespace vpp
