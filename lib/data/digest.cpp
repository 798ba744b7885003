#include "data/digest.hpp"

#include <algorithm>
#include <cstdint>

#include "base/bytes.hpp"

namespace vpp {

void add_file(Hasher& hasher, std::span<const std::byte> file) {
    constexpr size_t kMiB = size_t{1} << 20;
    hasher.add(bytes_of(static_cast<uint64_t>(file.size())));
    const size_t head = std::min(file.size(), kMiB);
    const size_t tail = std::min(file.size() - head, kMiB);
    hasher.add(file.first(head));
    hasher.add(file.last(tail));
}

}  // namespace vpp
