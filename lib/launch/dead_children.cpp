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

bool has_started_one_that_is_dead(const fs::path& thread) {
    std::ifstream children(thread / "children");
    return std::any_of(std::istream_iterator<pid_t>(children), {}, is_dead);
}

}  // namespace

bool has_dead_child(pid_t parent) {
    std::error_code problem;
    const fs::directory_iterator threads("/proc/" + std::to_string(parent) + "/task", problem);
    return std::any_of(begin(threads), end(threads), has_started_one_that_is_dead);
}

}  // namespace vpp
