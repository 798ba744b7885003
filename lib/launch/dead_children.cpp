#include "launch/dead_children.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

namespace vpp {

namespace fs = std::filesystem;

namespace {

/// "PID (NAME) STATE PARENT ..." of proc(5); a name may hold anything, so what counts is its last bracket.
bool is_dead_child(const std::string& status, pid_t parent) {
    const size_t name_end = status.rfind(')');
    return name_end != std::string::npos &&
           status.substr(name_end + 1).starts_with(" Z " + std::to_string(parent) + ' ');
}

}  // namespace

bool has_dead_child(pid_t parent) {
    std::error_code problem;
    fs::directory_iterator processes("/proc", problem);
    return std::any_of(begin(processes), end(processes), [&](const fs::directory_entry& process) {
        std::string status;
        std::getline(std::ifstream(process.path() / "stat"), status);
        return is_dead_child(status, parent);
    });
}

}  // namespace vpp
