#pragma once
// Autocast for the meta device. LibTorch casts only what lies on a real device, so a probe with meta tensors would see
// the dtypes of full precision. Here they are cast as autocast on the CPU casts real ones: by op, wherever it is
// called, inside other ops too.
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/ScalarType.h>

#include <optional>
#include <vector>

#include "graph/autocast.hpp"

namespace vpp {

/// What autocast on the CPU does with the floating-point tensors that an op takes; those of float64 stay.
enum class CastRule {
    None,    ///< nothing; what the op calls inside has rules of its own
    Lower,   ///< all to the lower precision
    Float,   ///< all to float32
    Widest,  ///< all to float32 when one of them is, else to the lower precision
};

/// Whether there is a rule is asked of LibTorch; which one it is says a table of names, that a test compares with what
/// LibTorch does.
CastRule cast_rule(const c10::OperatorHandle& op);

/// Bytes of the copies that autocast makes of the tensors that an op takes.
int64_t bytes_of_casts(const c10::OperatorHandle& op, const std::vector<at::Tensor>& taken, c10::ScalarType lower);

/// Meta tensors that this thread's ops take while it lives are cast. Without a dtype it does nothing.
class MetaAutocastScope {
  public:
    explicit MetaAutocastScope(std::optional<c10::ScalarType> dtype);

  private:
    AutocastScope scope_;
};

}  // namespace vpp
