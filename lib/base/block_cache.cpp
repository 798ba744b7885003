#include "base/block_cache.hpp"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

namespace vpp {

namespace {

constexpr size_t kAlignmentBytes = 64;
constexpr size_t kMaxBlockBytes = size_t{1} << 46;
/// The heap adds less than this to what it is asked for. So a block's size tells whether a large one was asked for.
constexpr size_t kMostAddedBytes = 256;

/// A kept block may be larger than what is asked for by no more than this.
size_t tolerated(size_t num_bytes) {
    constexpr size_t kPageBytes = 4096;
    return num_bytes + num_bytes / 32 + kPageBytes;
}

}  // namespace

size_t BlockCache::size_of(void* block) {
    return malloc_usable_size(block);
}

BlockCache::~BlockCache() {
    while (!by_age_.empty()) release_oldest();
}

void* BlockCache::take(size_t num_bytes) {
    if (num_bytes > kMaxBlockBytes) return nullptr;
    if (num_bytes < least_bytes_) return allocate(num_bytes);
    const std::lock_guard lock(mutex_);
    if (void* kept = take_kept(num_bytes)) return kept;
    const auto bytes = static_cast<int64_t>(num_bytes);
    const int64_t room_bytes = std::max(most_taken_bytes_, taken_bytes_ + bytes);
    // Before the new block is there, so that the most is never more.
    while (!by_age_.empty() && taken_bytes_ + bytes + kept_bytes_ > room_bytes) release_oldest();
    const size_t asked_bytes = std::max(num_bytes, least_bytes_ + kMostAddedBytes);
    void* block = allocate(asked_bytes);
    if (block == nullptr) {
        while (!by_age_.empty()) release_oldest();
        block = allocate(asked_bytes);
    }
    if (block == nullptr) return nullptr;
    taken_bytes_ += static_cast<int64_t>(size_of(block));
    most_taken_bytes_ = std::max(most_taken_bytes_, taken_bytes_);
    return block;
}

void BlockCache::give(void* block) {
    if (block == nullptr) return;
    const size_t num_bytes = size_of(block);
    if (num_bytes < least_bytes_ + kMostAddedBytes) return std::free(block);
    const std::lock_guard lock(mutex_);
    by_age_.emplace(num_given_, by_size_.emplace(num_bytes, std::make_pair(block, num_given_)));
    ++num_given_;
    taken_bytes_ -= static_cast<int64_t>(num_bytes);
    kept_bytes_ += static_cast<int64_t>(num_bytes);
}

int64_t BlockCache::taken_bytes() const {
    const std::lock_guard lock(mutex_);
    return taken_bytes_;
}

int64_t BlockCache::kept_bytes() const {
    const std::lock_guard lock(mutex_);
    return kept_bytes_;
}

BlockCache& BlockCache::of_process() {
    static BlockCache& cache = *new BlockCache;
    return cache;
}

/// Of those that fit best the one that was given last: it may still be in the processor's cache.
void* BlockCache::take_kept(size_t num_bytes) {
    const auto smallest = by_size_.lower_bound(num_bytes);
    if (smallest == by_size_.end() || smallest->first > tolerated(num_bytes)) return nullptr;
    const auto found = std::prev(by_size_.upper_bound(smallest->first));
    const auto [block, age] = found->second;
    const auto bytes = static_cast<int64_t>(found->first);
    by_age_.erase(age);
    by_size_.erase(found);
    kept_bytes_ -= bytes;
    taken_bytes_ += bytes;
    return block;
}

void* BlockCache::allocate(size_t num_bytes) {
    const size_t num_lines = std::max<size_t>(1, (num_bytes + kAlignmentBytes - 1) / kAlignmentBytes);
    return std::aligned_alloc(kAlignmentBytes, num_lines * kAlignmentBytes);
}

void BlockCache::release_oldest() {
    const auto oldest = by_age_.begin();
    kept_bytes_ -= static_cast<int64_t>(oldest->second->first);
    std::free(oldest->second->second.first);
    by_size_.erase(oldest->second);
    by_age_.erase(oldest);
}

}  // namespace vpp
