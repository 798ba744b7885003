#include "stage/torch_device_memory.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "device/device.hpp"
#include "device/device_marks.hpp"
#include "device/stream_memory.hpp"
#include "stage/message.hpp"

namespace vpp {

namespace {

using c10::impl::VirtualGuardImpl;

c10::Stream other_stream(at::Device device) {
    return VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device);
}

std::shared_ptr<c10::Event> shared_moment_of(const c10::Stream& stream) {
    return std::make_shared<c10::Event>(moment_of(stream));
}

class TorchDeviceMemory final : public DeviceMemory {
  public:
    explicit TorchDeviceMemory(at::Device device)
        : device_(device), computing_(current_stream(device)), idle_(other_stream(device)) {}

    void enter() override { start_device(device_); }

    Outgoing send(MemoryPart part) override {
        return {std::move(part), [computed = shared_moment_of(current_stream(device_))] { return computed->query(); }};
    }

    /// Nothing is given to the idle stream, so what its pool has is free at once.
    MemoryPart take(size_t num_bytes) override {
        return {stream_memory(idle_, computing_, num_bytes), num_bytes, true};
    }

    MemoryPart deliver(MemoryPart taken) override { return taken; }

  private:
    at::Device device_;
    c10::Stream computing_, idle_;
};

class StagedMemory final : public DeviceMemory {
  public:
    explicit StagedMemory(at::Device device)
        : device_(device),
          computing_(current_stream(device)),
          sending_(other_stream(device)),
          receiving_(other_stream(device)) {}

    void enter() override { start_device(device_); }

    Outgoing send(MemoryPart part) override {
        MemoryPart staged = take(part.num_bytes);
        sending_.wait(moment_of(current_stream(device_)));
        const auto copied = std::make_shared<c10::Event>(copy(staged, part, sending_));
        return {std::move(staged), [copied, part = std::move(part)] { return copied->query(); }};
    }

    MemoryPart take(size_t num_bytes) override {
        const auto options = at::TensorOptions(at::kByte).pinned_memory(device_.is_cuda());
        return part_of(at::empty({static_cast<int64_t>(num_bytes)}, options), num_bytes);
    }

    MemoryPart deliver(MemoryPart taken) override {
        while (!delivered_.empty() && delivered_.front().first.query()) delivered_.pop_front();
        const MemoryPart part{stream_memory(receiving_, computing_, taken.num_bytes), taken.num_bytes, true};
        delivered_.emplace_back(copy(part, taken, receiving_), std::move(taken));
        current_stream(device_).wait(delivered_.back().first);
        return part;
    }

    void set_timed(bool is_timed) override { is_timed_ = is_timed; }

    std::vector<std::pair<int64_t, int64_t>> take_times() override {
        if (timed_.empty()) return {};
        for (const c10::Stream& stream : {sending_, receiving_}) stream.synchronize();
        const EventClock clock(receiving_);
        std::vector<std::pair<int64_t, int64_t>> times;
        for (const auto& [begun, done] : timed_) times.emplace_back(clock.time_of(begun), clock.time_of(done));
        timed_.clear();
        return times;
    }

  private:
    at::Tensor over(const MemoryPart& part) const {
        const at::Device place = part.is_on_device ? device_ : at::Device(at::kCPU);
        const auto options = at::TensorOptions(at::kByte).device(place);
        return at::from_blob(
            part.data.get(), {static_cast<int64_t>(part.num_bytes)}, {1}, [](void*) {}, options, place);
    }

    /// The moment when it is done.
    c10::Event copy(const MemoryPart& to, const MemoryPart& from, const c10::Stream& stream) {
        const c10::StreamGuard guard(stream);
        std::optional<c10::Event> begun;
        if (is_timed_) begun = timed_moment_of(stream);
        over(to).copy_(over(from), /*non_blocking=*/true);
        if (begun) timed_.emplace_back(std::move(*begun), timed_moment_of(stream));
        return moment_of(stream);
    }

    at::Device device_;
    c10::Stream computing_, sending_, receiving_;
    std::deque<std::pair<c10::Event, MemoryPart>> delivered_;  ///< kept until it is copied
    bool is_timed_ = false;
    std::vector<std::pair<c10::Event, c10::Event>> timed_;  ///< begin and end of copies
};

}  // namespace

std::unique_ptr<DeviceMemory> make_device_memory(at::Device device) {
    return std::make_unique<TorchDeviceMemory>(device);
}

std::unique_ptr<DeviceMemory> make_staged_memory(at::Device device) {
    return std::make_unique<StagedMemory>(device);
}

}  // namespace vpp
