#include "graph/autocast.hpp"

#include <ATen/autocast_mode.h>

#include "base/error.hpp"

namespace vpp {

using namespace at::autocast;

std::optional<c10::ScalarType> autocast_dtype(const std::string& precision) {
    if (precision == "bf16") return c10::ScalarType::BFloat16;
    if (precision == "fp16") return c10::ScalarType::Half;
    check(precision == "fp32", "a precision is fp32, bf16 or fp16");
    return std::nullopt;
}

void set_autocast(c10::DeviceType device, std::optional<c10::ScalarType> dtype) {
    set_autocast_enabled(device, dtype.has_value());
    if (!dtype) return;
    set_autocast_cache_enabled(false);
    set_autocast_dtype(device, *dtype);
}

AutocastScope::AutocastScope(c10::DeviceType device, std::optional<c10::ScalarType> dtype)
    : device_(device), before_{is_autocast_enabled(device), is_autocast_cache_enabled(), get_autocast_dtype(device)} {
    if (dtype) set_autocast(device, dtype);
}

AutocastScope::~AutocastScope() {
    set_autocast_enabled(device_, before_.is_enabled);
    set_autocast_cache_enabled(before_.has_cache);
    set_autocast_dtype(device_, before_.dtype);
}

}  // namespace vpp
