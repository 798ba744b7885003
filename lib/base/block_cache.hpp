#pragma once
// Large blocks of memory that are used again. A step takes and frees the same sizes as the one before; what glibc gives
// back to the system in between comes back as pages that the system clears anew, which is a tenth of some steps.
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

namespace vpp {

/// Invariant: what is taken and what is kept never come to more than the most that was ever taken at once, so keeping
/// costs no memory at the peak. All threads may call it at any time.
class BlockCache {
  public:
    /// Smaller blocks come from the heap and go back there.
    explicit BlockCache(size_t least_bytes = size_t{1} << 16) : least_bytes_(least_bytes) {}
    ~BlockCache();
    BlockCache(const BlockCache&) = delete;
    BlockCache& operator=(const BlockCache&) = delete;

    /// A block of at least that size, 64-byte aligned, of any content; null when there is no memory left.
    void* take(size_t num_bytes);
    /// A block that take gave; null is none.
    void give(void* block);
    /// Of a block that take gave: at least what was asked for.
    static size_t size_of(void* block);

    /// Of large blocks.
    int64_t taken_bytes() const;
    int64_t kept_bytes() const;

    /// That of the tensors and messages of this process; it is never destroyed, since they may outlive all else.
    static BlockCache& of_process();

  private:
    /// Kept blocks by size, with when they were given.
    using BySize = std::multimap<size_t, std::pair<void*, uint64_t>>;
    void* take_kept(size_t num_bytes);
    void* allocate(size_t num_bytes);
    void release_oldest();

    const size_t least_bytes_;
    mutable std::mutex mutex_;
    BySize by_size_;
    std::map<uint64_t, BySize::iterator> by_age_;  ///< the same, oldest first
    uint64_t num_given_ = 0;
    int64_t taken_bytes_ = 0, kept_bytes_ = 0, most_taken_bytes_ = 0;
};

}  // namespace vpp
