#include "stage/torch_device_memory.hpp"

#include <c10/core/Allocator.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "device/device.hpp"

namespace vpp {

namespace {

using c10::impl::VirtualGuardImpl;

class TorchDeviceMemory final : public DeviceMemory {
  public:
    explicit TorchDeviceMemory(at::Device device)
        : device_(device),
          computing_(VirtualGuardImpl(device.type()).getStream(device)),
          idle_(VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device)) {}

    void enter() override { start_device(device_); }

    std::function<bool()> mark() override {
        const auto mark = std::make_shared<c10::Event>(device_.type(), c10::EventFlag::BACKEND_DEFAULT);
        mark->record(VirtualGuardImpl(device_.type()).getStream(device_));
        return [mark] { return mark->query(); };
    }

    /// From the allocator's pool of a stream that is given nothing, so what the pool has is free at once; and it gets
    /// back what the computing stream no longer uses.
    MemoryPart take(size_t num_bytes) override {
        const c10::StreamGuard guard(idle_);
        const auto give_back = [computing = computing_](c10::DataPtr* memory) {
            VirtualGuardImpl(computing.device_type()).recordDataPtrOnStream(*memory, computing);
            delete memory;
        };
        const std::shared_ptr<c10::DataPtr> memory(
            new c10::DataPtr(c10::GetAllocator(device_.type())->allocate(num_bytes)), give_back);
        return {std::shared_ptr<std::byte>(memory, static_cast<std::byte*>(memory->get())), num_bytes, true};
    }

  private:
    at::Device device_;
    c10::Stream computing_, idle_;
};

}  // namespace

std::unique_ptr<DeviceMemory> make_device_memory(at::Device device) {
    return std::make_unique<TorchDeviceMemory>(device);
}

}  // namespace vpp
