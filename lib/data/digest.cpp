#include "data/digest.hpp"

#include <algorithm>
#include <cstdint>

#include "base/bytes.hpp"

namespace vpp {

void add_file(Hasher& hasher, const InputFile& file) {
    constexpr uint64_t kMiB = uint64_t{1} << 20;
    const uint64_t size = file.size_bytes();
    hasher.add(bytes_of(size));
    const uint64_t head = std::min(size, kMiB);
    const uint64_t tail = std::min(size - head, kMiB);
    Bytes bytes(head);
    file.read(0, bytes);
    hasher.add(bytes);
    bytes.resize(tail);
    file.read(size - tail, bytes);
    hasher.add(bytes);
}

}  // namespace vpp
