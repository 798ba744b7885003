#pragma once
// The beginning of an IDX file, the format of MNIST. A pure function over bytes: the part that meets hostile input and
// that the fuzzer drives.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.hpp"

namespace vpp::detail {

/// Two zero bytes, one for the type, one for the number of dims; a big-endian uint32 for each dim; then the values in
/// big endian.
/// Source: "The IDX file format" of the MNIST database, http://yann.lecun.com/exdb/mnist.
struct IdxLayout {
    DType dtype = DType::U8;
    std::vector<int64_t> shape;
    uint64_t offset_bytes = 0;  ///< where the values begin
};

/// The most of a file's beginning that is looked at.
inline constexpr size_t kMostIdxDims = 8;
inline constexpr size_t kMaxIdxBeginBytes = 4 + 4 * kMostIdxDims;

/// Requires: `begin` is the first kMaxIdxBeginBytes of the file, or all of a shorter one.
/// On return there is at least one dim, none is 0, and the values fill the rest of the `size_bytes` exactly.
/// Throws: Error{BadData} that begins with `source`.
IdxLayout idx_layout(std::span<const std::byte> begin, uint64_t size_bytes, const std::string& source);

}  // namespace vpp::detail
