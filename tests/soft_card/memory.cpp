#include "soft_card/memory.hpp"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <shared_mutex>

#include "base/error.hpp"

namespace vpp::soft_card {

namespace {

/// User addresses end below bit 47; with this bit turned an address of the heap is one where nothing is.
constexpr uintptr_t kCardBit = uintptr_t{1} << 46;
constexpr size_t kAlignment = 512;  // of cudaMalloc
constexpr size_t kDefaultCardBytes = size_t{8} << 30;

struct Block {
    size_t num_bytes;
    bool is_pinned;
};

struct Blocks {
    std::shared_mutex mutex;
    std::map<uintptr_t, Block> at;
    size_t card_bytes_taken = 0;
};

Blocks& blocks() {
    static auto& all = *new Blocks;  // threads of the card outlive static objects
    return all;
}

uintptr_t number_of(const void* address) {
    return reinterpret_cast<uintptr_t>(address);
}

void* new_block(size_t num_bytes) {
    void* block = std::aligned_alloc(kAlignment, (num_bytes + kAlignment - 1) / kAlignment * kAlignment);
    if (block != nullptr) std::memset(block, kGarbage, num_bytes);
    return block;
}

}  // namespace

void* take_card_memory(size_t num_bytes) {
    Blocks& all = blocks();
    const std::lock_guard lock(all.mutex);
    if (num_bytes > card_bytes() - all.card_bytes_taken) return nullptr;
    void* block = new_block(num_bytes);
    if (block == nullptr) return nullptr;
    all.card_bytes_taken += num_bytes;
    const uintptr_t far = number_of(block) ^ kCardBit;
    all.at[far] = {num_bytes, false};
    return reinterpret_cast<void*>(far);
}

void* take_pinned_memory(size_t num_bytes) {
    Blocks& all = blocks();
    const std::lock_guard lock(all.mutex);
    void* block = new_block(num_bytes);
    if (block != nullptr) all.at[number_of(block)] = {num_bytes, true};
    return block;
}

void give_memory(void* address) {
    if (address == nullptr) return;
    Blocks& all = blocks();
    const std::lock_guard lock(all.mutex);
    const auto block = all.at.find(number_of(address));
    check(block != all.at.end(), "what is given back was taken");
    std::free(block->second.is_pinned ? address : reinterpret_cast<void*>(number_of(address) ^ kCardBit));
    if (!block->second.is_pinned) all.card_bytes_taken -= block->second.num_bytes;
    all.at.erase(block);
}

Place place_of(const void* address) {
    Blocks& all = blocks();
    const std::shared_lock lock(all.mutex);
    auto block = all.at.upper_bound(number_of(address));
    if (block == all.at.begin()) return Place::Pageable;
    --block;
    if (number_of(address) - block->first >= block->second.num_bytes) return Place::Pageable;
    return block->second.is_pinned ? Place::Pinned : Place::Card;
}

void* near(const void* address) {
    const uintptr_t turned = place_of(address) == Place::Card ? kCardBit : 0;
    return reinterpret_cast<void*>(number_of(address) ^ turned);
}

size_t card_bytes() {
    static const size_t bytes = [] {
        const char* text = std::getenv("VPP_SOFT_CARD_BYTES");
        return text == nullptr ? kDefaultCardBytes : static_cast<size_t>(std::strtoull(text, nullptr, 10));
    }();
    return bytes;
}

size_t free_card_bytes() {
    Blocks& all = blocks();
    const std::shared_lock lock(all.mutex);
    return card_bytes() - all.card_bytes_taken;
}

}  // namespace vpp::soft_card
