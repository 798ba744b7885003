#pragma once
// A named tensor as plain bytes: what goes into shards and comes out of them. Contiguous, row-major, little-endian.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.hpp"

namespace vpp {

struct TensorBytes {
    std::string name;
    DType dtype = DType::F32;
    std::vector<int64_t> shape;
    std::span<const std::byte> bytes;  ///< borrowed; none where `read` gives them
    /// Of those that lie where no span reaches, as on a card: copies the bytes from `begin` on.
    std::function<void(uint64_t begin, std::span<std::byte> out)> read = {};

    uint64_t size_bytes() const { return static_cast<uint64_t>(num_elements(shape)) * size_of(dtype); }
};

}  // namespace vpp
