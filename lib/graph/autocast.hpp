#pragma once
// Mixed precision with the meaning of torch.autocast(device, dtype, cache_enabled=False): parameters stay as they are,
// and each op takes what it is given in the dtype that LibTorch's lists for the device say. Without the cache every use
// of a parameter is a cast of its own: which uses share one would depend on where the model is cut, and with it the
// order in which their gradients are added.
#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

#include <optional>
#include <string>

namespace vpp {

/// The dtype of train.precision: nothing for "fp32", where ops run as they are.
/// Requires: a word of that key.
std::optional<c10::ScalarType> autocast_dtype(const std::string& precision);

/// From here on ops of this thread on `device` are cast to `dtype`, or run as they are.
void set_autocast(c10::DeviceType device, std::optional<c10::ScalarType> dtype);

/// Ops that this thread runs while it lives are cast, unless set_autocast says otherwise; before and behind it all is
/// as it was. Backward runs outside of it, as LibTorch wants it.
class AutocastScope {
  public:
    AutocastScope(c10::DeviceType device, std::optional<c10::ScalarType> dtype);
    ~AutocastScope();
    AutocastScope(const AutocastScope&) = delete;
    AutocastScope& operator=(const AutocastScope&) = delete;

  private:
    struct State {
        bool is_enabled = false;
        bool has_cache = false;
        c10::ScalarType dtype = c10::ScalarType::Float;
    };

    c10::DeviceType device_;
    State before_;
};

}  // namespace vpp
