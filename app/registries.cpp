#include "app/registries.hpp"

#include "comm/transport_kinds.hpp"
#include "data/dataset.hpp"
#include "device/device.hpp"
#include "graph/loss_kinds.hpp"
#include "graph/split.hpp"
#include "optim/lr.hpp"
#include "optim/optimizer.hpp"
#include "schedule/generators.hpp"

namespace vpp {

Names registered_names() {
    Names names;
    names.datasets = dataset_kinds();
    names.losses = loss_kinds();
    names.split_methods = split_methods();
    names.schedules = schedule_names();
    names.schedules.emplace_back("CUSTOM");  // from a file
    names.schedules.emplace_back("AUTO");    // searched
    names.optimizers = optimizer_kinds();
    names.lr_schedules = lr_schedule_kinds();
    names.devices = device_kinds();
    names.transports = transport_kinds();
    return names;
}

}  // namespace vpp
