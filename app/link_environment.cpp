#include "app/link_environment.hpp"

#include <cstdlib>

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

}  // namespace

std::string prepare_links() {
    set_unless_set(kNcclReductionsVariable, kNcclReductions);
    follow_interfaces_of_mpi();
    std::string replaced = replace(kKernelLoadingVariable, kKernelLoading);
    const std::string queues = replace(kCudaQueuesVariable, kCudaQueues);
    if (!replaced.empty() && !queues.empty()) replaced += ", ";
    return printable(replaced + queues);
}

}  // namespace vpp
