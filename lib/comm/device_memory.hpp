#pragma once
// What a transport asks of the device whose memory its library moves by itself (CUDA-aware MPI). The device works on
// behind the calls that hand it work, so a message may not be read before the device has computed it, and memory that
// the device still uses may not be written. By LibTorch: stage/torch_device_memory.hpp.
#include <cstddef>
#include <functional>

#include "comm/transport.hpp"

namespace vpp {

class DeviceMemory {
  public:
    virtual ~DeviceMemory() = default;
    /// Makes the device the calling thread's own: to be called first by each thread that moves its memory.
    virtual void enter() = 0;
    /// What says whether all that the calling thread has given the device until now is done. It may be asked by any
    /// thread and never waits.
    virtual std::function<bool()> mark() = 0;
    /// New memory that nothing which the device was given before still reads or writes. From any thread.
    virtual MemoryPart take(size_t num_bytes) = 0;
};

}  // namespace vpp
