#pragma once
// Messages with a part in the memory of devices.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "comm/links.hpp"

namespace vpp::test {

constexpr size_t kCapacityBytes = 64;
inline const std::vector<Link> kBothWays{{{0, 1}}, {{1, 0}}};

inline MemoryPart memory_of(uint64_t value, size_t num_bytes = sizeof(uint64_t)) {
    const std::shared_ptr<std::byte> bytes(new std::byte[num_bytes], std::default_delete<std::byte[]>());
    std::fill(bytes.get(), bytes.get() + num_bytes, static_cast<std::byte>(value));
    return {bytes, num_bytes};
}

inline bool is_filled_with(const MemoryPart& memory, uint64_t value) {
    return std::all_of(memory.data.get(), memory.data.get() + memory.num_bytes,
                       [&](std::byte byte) { return byte == static_cast<std::byte>(value); });
}

inline Buffer linked_message(uint64_t value, MemoryPart part = {}) {
    Buffer message(sizeof(value));
    std::memcpy(message.bytes().data(), &value, sizeof(value));
    message.set_part(std::move(part));
    return message;
}

}  // namespace vpp::test
