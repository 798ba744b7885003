#include "launch/dead_children.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace vpp {

namespace fs = std::filesystem;

namespace {

/// By "PID (NAME) STATE ..." of proc(5); a name may hold anything, so what counts is its last bracket.
bool is_dead(pid_t process) {
    std::string status;
    std::getline(std::ifstream("/proc/" + std::to_string(process) + "/stat"), status);
    const size_t name_end = status.rfind(')');
    return name_end != std::string::npos && status.substr(name_end + 1).starts_with(" Z ");
}

bool is_rank(pid_t process) {
    std::ifstream variables("/proc/" + std::to_string(process) + "/environ", std::ios::binary);
    for (std::string variable; std::getline(variables, variable, '\0');) {
        if (variable.starts_with("OMPI_COMM_WORLD_RANK=")) return true;
    }
    return false;
}

bool has_child(pid_t parent, bool (*is_wanted)(pid_t)) {
    std::error_code problem;
    const fs::directory_iterator threads("/proc/" + std::to_string(parent) + "/task", problem);
    return std::any_of(begin(threads), end(threads), [&](const fs::path& thread) {
        std::ifstream children(thread / "children");
        return std::any_of(std::istream_iterator<pid_t>(children), {}, is_wanted);
    });
}

}  // namespace

bool has_dead_child(pid_t parent) {
    return has_child(parent, is_dead);
}

bool has_living_rank(pid_t parent) {
    return has_child(parent, is_rank);
}

}  // namespace vpp
