#pragma once
// A named tensor as plain bytes: what goes into shards and comes out of them. Contiguous, row-major, little-endian.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.hpp"

namespace vpp {

struct TensorBytes {
    std::string name;
    DType dtype = DType::F32;
    std::vector<int64_t> shape;
    std::span<const std::byte> bytes;  ///< borrowed
};

}  // namespace vpp
