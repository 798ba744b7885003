#pragma once
// Messages with a part in the memory of devices.
#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/in_process.hpp"
#include "comm/link_transport.hpp"
#include "comm/links.hpp"
#include "support/recorded_links.hpp"

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

/// Runs `body` on each rank of a world over links; what it ends with.
inline std::string run(int num_ranks, const std::vector<Link>& links, RecordedLinks& recorded,
                       const std::function<void(LinkTransport&)>& body, uint64_t seed = 0) {
    try {
        InProcessWorld({.num_ranks = num_ranks, .seed = seed, .delay_probability = 0.3}).run([&](Transport& bytes) {
            const auto maker = recorded.maker(bytes.rank(), &bytes);
            LinkTransport transport(bytes, links, *maker, /*patience_seconds=*/0);
            body(transport);
        });
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

}  // namespace vpp::test
