#pragma once
// How much memory the tensors and messages of this process take: what is alive now, and the most that was. The
// messages' buffers (comm/transport.hpp) and LibTorch's allocator (stage/tensor_memory.hpp) say what they take and give
// back; all threads may, at any time.
#include <cstdint>

namespace vpp::live_bytes {

/// Taken; negative: given back.
void add(int64_t bytes);

int64_t now();

/// The most that was alive at once since the last restart_peak.
int64_t peak();

/// The peak is what is alive now.
void restart_peak();

/// While one lives, tensors that this thread makes count for nothing: their memory is never filled, and takes none.
class Unfilled {
  public:
    Unfilled();
    ~Unfilled();
    Unfilled(const Unfilled&) = delete;
    Unfilled& operator=(const Unfilled&) = delete;

    static bool is_on();
};

}  // namespace vpp::live_bytes
