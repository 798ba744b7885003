#include "device/stream_memory.hpp"

#include <c10/core/Allocator.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace vpp {

std::shared_ptr<std::byte> stream_memory(c10::Stream filling, c10::Stream using_it, size_t num_bytes) {
    const c10::StreamGuard guard(filling);
    const auto give_back = [using_it](c10::DataPtr* memory) {
        c10::impl::VirtualGuardImpl(using_it.device_type()).recordDataPtrOnStream(*memory, using_it);
        delete memory;
    };
    const std::shared_ptr<c10::DataPtr> memory(
        new c10::DataPtr(c10::GetAllocator(filling.device_type())->allocate(num_bytes)), give_back);
    return {memory, static_cast<std::byte*>(memory->get())};
}

}  // namespace vpp
