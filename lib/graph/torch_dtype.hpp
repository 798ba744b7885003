#pragma once
// DType <-> LibTorch's ScalarType.
#include <c10/core/ScalarType.h>

#include <optional>
#include <string>

#include "base/dtype.hpp"

namespace vpp {

/// "float32", "complex64". Throws Error{BadData} for types that no message carries (quantised, float8).
std::string dtype_name(c10::ScalarType type);
/// Nothing for types that vpp does not carry (complex, quantised, float8).
std::optional<DType> carried_dtype(c10::ScalarType type);
/// Throws Error{BadData} for types that vpp does not carry (complex, quantised, float8).
DType from_torch(c10::ScalarType type);
c10::ScalarType to_torch(DType dtype);

}  // namespace vpp
