#include "launch/dead_children.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace vpp {

namespace fs = std::filesystem;

namespace {

/// "Z" for a zombie, "T" for a stopped one: by "PID (NAME) STATE ..." of proc(5); a name may hold anything, so what
/// counts is its last bracket.
char state_of(pid_t process) {
    std::string status;
    std::getline(std::ifstream("/proc/" + std::to_string(process) + "/stat"), status);
    const size_t name_end = status.rfind(')');
    return name_end != std::string::npos && name_end + 2 < status.size() ? status[name_end + 2] : ' ';
}

bool is_rank(pid_t process) {
    std::ifstream variables("/proc/" + std::to_string(process) + "/environ", std::ios::binary);
    for (std::string variable; std::getline(variables, variable, '\0');) {
        if (variable.starts_with("OMPI_COMM_WORLD_RANK=")) return true;
    }
    return false;
}

std::vector<pid_t> children_of(pid_t parent) {
    std::vector<pid_t> children;
    std::error_code problem;
    for (const fs::path& thread : fs::directory_iterator("/proc/" + std::to_string(parent) + "/task", problem)) {
        std::ifstream list(thread / "children");
        children.insert(children.end(), std::istream_iterator<pid_t>(list), {});
    }
    return children;
}

}  // namespace

bool has_dead_child(pid_t parent) {
    return std::ranges::any_of(children_of(parent), [](pid_t child) { return state_of(child) == 'Z'; });
}

LivingRanks living_ranks(pid_t parent) {
    LivingRanks ranks;
    for (pid_t child : children_of(parent)) {
        if (!is_rank(child)) continue;
        ++ranks.num;
        if (state_of(child) == 'T') ranks.stopped.push_back(child);
    }
    return ranks;
}

}  // namespace vpp
