#pragma once
// Where one array lies in a file, whatever its format: C order, little endian.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.hpp"

namespace vpp::detail {

/// Invariant: the bytes of the shape lie inside the file.
struct ArrayPlace {
    DType dtype = DType::F32;
    std::vector<int64_t> shape;
    uint64_t offset_bytes = 0;  ///< in the file

    /// Whether a dim is 0; then the others may be of any size, and have no product.
    bool is_empty() const { return std::ranges::find(shape, 0) != shape.end(); }
};

/// One of the arrays of a file.
struct FoundArray {
    std::string name;
    std::optional<ArrayPlace> place = {};  ///< nothing where it cannot be read
    std::string problem = {};              ///< why
};

}  // namespace vpp::detail
