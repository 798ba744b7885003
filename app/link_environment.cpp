#include "app/link_environment.hpp"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <vector>

#include "app/environment.hpp"
#include "base/error.hpp"
#include "comm/transport_kinds.hpp"
#include "device/device.hpp"
#include "launch/interfaces.hpp"

namespace vpp {

namespace {

/// NAME=VALUE of before where that was another value.
std::string replace(const char* variable, const std::string& value) {
    const char* before = std::getenv(variable);
    const std::string replaced = before != nullptr && before != value ? std::string(variable) + "=" + before : "";
    ::setenv(variable, value.c_str(), /*replace=*/1);
    return replaced;
}

/// Of the hosts' networks NCCL would choose one by itself.
void follow_interfaces_of_mpi() {
    const auto told = environment_of({kMpiInterfacesVariable});
    if (told.empty()) return;
    std::string names;
    for (const std::string& name : interfaces_in(told.begin()->second, look_at_addresses())) {
        names += (names.empty() ? "=" : ",") + name;
    }
    if (!names.empty()) set_unless_set(kNcclInterfacesVariable, names.c_str());
}

/// Lines NAME=VALUE; what is set before goes before.
void add_settings(const std::string& file, std::map<std::string, std::string>& settings) {
    std::ifstream lines(file);
    for (std::string line; std::getline(lines, line);) {
        const size_t equals = line.find('=');
        if (line.starts_with('#') || equals == std::string::npos) continue;
        settings.emplace(line.substr(0, equals), line.substr(equals + 1));
    }
}

/// Its own of a user, and that of the host (NCCL's user guide, "Environment Variables").
std::vector<std::string> nccl_files() {
    std::vector<std::string> files{"/etc/nccl.conf"};
    const auto told = environment_of({"NCCL_CONF_FILE"});
    const passwd* user = ::getpwuid(::getuid());
    if (!told.empty()) {
        files.insert(files.begin(), told.begin()->second);
    } else if (user != nullptr && user->pw_dir != nullptr) {
        files.insert(files.begin(), std::string(user->pw_dir) + "/.nccl.conf");
    }
    return files;
}

}  // namespace

std::string nccl_overrides() {
    std::map<std::string, std::string> settings = environment_of(overriding_nccl_variables());
    for (const std::string& file : nccl_files()) add_settings(file, settings);
    std::string text;
    for (const std::string& name : overriding_nccl_variables()) {
        const auto found = settings.find(name);
        if (found != settings.end()) text += (text.empty() ? "" : ", ") + name + "=" + printable(found->second);
    }
    return text;
}

std::string prepare_links() {
    set_unless_set(kNcclReductionsVariable, kNcclReductions);
    follow_interfaces_of_mpi();
    std::string replaced = replace(kKernelLoadingVariable, kKernelLoading);
    const std::string queues = replace(kCudaQueuesVariable, kCudaQueues);
    if (!replaced.empty() && !queues.empty()) replaced += ", ";
    return printable(replaced + queues);
}

}  // namespace vpp
