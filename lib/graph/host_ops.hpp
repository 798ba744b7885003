#pragma once
// The ops of models that run on the host when a stage computes on a card (device/host_kernels.hpp). More do so in one
// form only, which their names do not show: README has the list.
#include <string_view>

namespace vpp {

enum class OnHost { Never, Backward, Always };

/// When an op ("aten::ctc_loss") runs on the host.
OnHost runs_on_host(std::string_view kind);

}  // namespace vpp
