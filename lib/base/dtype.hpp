#pragma once
// Element types of tensors, without torch. The names are those of the plan and of inspect; the safetensors format has
// its own (checkpoint/safetensors.hpp).
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vpp {

enum class DType : uint8_t { F32, F64, F16, BF16, I64, I32, I16, I8, U8, U16, U32, Bool };

/// Whether it is one of these; what comes from outside may be any byte.
bool is_known(DType dtype);
/// Bytes of one element.
size_t size_of(DType dtype);
/// "float32", "int64", ...
std::string_view name_of(DType dtype);
/// "complex64": two of them, the real part and the imaginary one.
std::string complex_name(DType part);
/// The type with that name, if there is one.
std::optional<DType> dtype_from_name(std::string_view name);
/// Whether it can carry a gradient.
bool is_floating(DType dtype);

/// Product of the dims; 1 for a scalar. Throws Error{BadData} when it does not fit in 62 bits or a dim is negative.
int64_t num_elements(const std::vector<int64_t>& shape);
/// Whether values of that shape are exactly so many bytes; no dim, however large, makes it wrap around.
/// Requires: no dim is negative.
bool fills(const std::vector<int64_t>& shape, DType dtype, uint64_t num_bytes);
/// "[4, 128]"
std::string shape_text(const std::vector<int64_t>& shape);

}  // namespace vpp
