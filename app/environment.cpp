#include "app/environment.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "base/process.hpp"
#include "comm/mpi_session.hpp"
#include "comm/transport_kinds.hpp"
#include "device/device.hpp"

namespace vpp {

namespace {

// mpirun hands variables that begin with OMPI_ on to all hosts.
constexpr const char* kJobOfRun = "OMPI_VPP_RUN";
constexpr const char* kTerminalWidth = "VPP_TERMINAL_WIDTH";

}  // namespace

std::map<std::string, std::string> environment_of(const std::vector<std::string>& names) {
    std::map<std::string, std::string> found;
    for (const std::string& name : names) {
        if (const char* value = std::getenv(name.c_str())) found[name] = value;
    }
    return found;
}

bool mpi_moves_card_memory() {
    return mpi_moves_device_memory(environment_of({kMpiCudaVariable}));
}

bool waits_for_kernels() {
    const char* value = std::getenv(kLaunchBlockingVariable);
    return value && std::string_view(value) == "1";
}

std::string nccl_host() {
    const char* value = std::getenv(kNcclHostVariable);
    return value ? value : "";
}

bool has_preloaded_libraries() {
    return std::getenv("LD_PRELOAD") != nullptr;
}

std::string program_name() {
    std::string name;
    std::ifstream words("/proc/self/cmdline", std::ios::binary);
    std::getline(words, name, '\0');
    return name.empty() ? "vpp" : name;
}

std::string program_beside(const std::string& name) {
    std::error_code unknown;
    return std::filesystem::read_symlink("/proc/self/exe", unknown).replace_filename(name).string();
}

std::string job_of_run() {
    const char* value = std::getenv(kJobOfRun);
    return value ? value : "";
}

bool is_started_by_run() {
    return !job_of_run().empty();
}

std::vector<std::string> variables_beginning_with(const std::string& begin) {
    std::vector<std::string> names;
    for (char** entry = ::environ; *entry != nullptr; ++entry) {
        const std::string name = std::string(*entry).substr(0, std::string_view(*entry).find('='));
        if (name.starts_with(begin)) names.push_back(name);
    }
    std::ranges::sort(names);
    return names;
}

bool unset(const char* variable) {
    const bool was_set = std::getenv(variable) != nullptr;
    ::unsetenv(variable);
    return was_set;
}

void set_unless_set(const char* variable, const char* value) {
    ::setenv(variable, value, 0);
}

void say_started_by_run() {
    const auto now = std::chrono::system_clock::now().time_since_epoch().count();
    const std::string job = host_name() + "." + std::to_string(::getpid()) + "." + std::to_string(now);
    ::setenv(kJobOfRun, job.c_str(), 1);
}

std::optional<StopPointNumber> stop_point_number() {
    const char* value = std::getenv("VPP_STOP_POINT");
    StopPointNumber wanted;
    if (!value || std::sscanf(value, "%d:%d", &wanted.rank, &wanted.number) != 2) return std::nullopt;
    return wanted;
}

std::optional<int> terminal_width_told() {
    const char* value = std::getenv(kTerminalWidth);
    int width = 0;
    char more = 0;
    const bool is_number = value && std::sscanf(value, "%5d%c", &width, &more) == 1 && width >= 0;
    return is_number ? std::optional(width) : std::nullopt;
}

void tell_terminal_width(std::optional<int> width) {
    if (width) {
        ::setenv(kTerminalWidth, std::to_string(*width).c_str(), 1);
    } else {
        ::unsetenv(kTerminalWidth);
    }
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
