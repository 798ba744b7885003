#pragma once
// What autocast would do on a card, without one: LibTorch's lists for CUDA (ATen/autocast_mode.h), applied to tensors
// of any device. So a microbatch can be followed on the meta device, where nothing is computed and no weight is read,
// and a plan for cards can be looked at on a machine that has none.
#include <ATen/core/ivalue.h>
#include <c10/core/ScalarType.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <optional>
#include <string>
#include <vector>

#include "graph/autocast.hpp"

namespace vpp {

/// The twin of AutocastScope for a card that is not there. Without a dtype ops run as they are until set_autocast says
/// otherwise.
class CardAutocastScope {
  public:
    explicit CardAutocastScope(std::optional<c10::ScalarType> dtype);

  private:
    AutocastScope scope_;
    c10::impl::IncludeDispatchKeyGuard included_;  ///< ops look at the casts whatever their tensors
};

/// Whose casts hold for ops of this thread on `device`: those of cards in a CardAutocastScope. The meta device has the
/// CPU's.
c10::DeviceType casting_device(c10::DeviceType device);

/// The arguments of the op `name` ("aten::layer_norm"; an overload behind a dot), which it would get cast in the scope
/// of this thread. Those of an op of no list stay.
/// Requires: no op that is told its dtype by an argument (softmax, sum, norm).
void cast_as_on_cards(const std::string& name, std::vector<c10::IValue>& arguments);

}  // namespace vpp
