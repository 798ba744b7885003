#pragma once
// Whole .npy files in memory, for data that vpp makes itself.
#include <cstdint>
#include <string>
#include <vector>

namespace vpp {

/// Requires: as many values as the shape says.
std::string array_file(const std::vector<int64_t>& shape, const std::vector<float>& values);
std::string array_file(const std::vector<int64_t>& shape, const std::vector<int64_t>& values);

}  // namespace vpp
