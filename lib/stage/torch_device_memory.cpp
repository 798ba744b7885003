#include "stage/torch_device_memory.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
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

/// Small against what a card copies in a moment, large against what a copy and a send cost by themselves: of 256 KiB to
/// 4 MiB the best or nearly at each size of messages (tests/bench/README.md, "Messages of devices").
constexpr size_t kPieceBytes = size_t{1} << 20;

c10::Stream other_stream(at::Device device) {
    return VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device);
}

class TorchDeviceMemory final : public DeviceMemory {
  public:
    explicit TorchDeviceMemory(at::Device device)
        : device_(device), computing_(current_stream(device)), idle_(other_stream(device)) {}

    void enter() override { start_device(device_); }

    Outgoing send(MemoryPart part) override {
        const size_t num_bytes = part.num_bytes;
        return {std::move(part), [computed = std::make_shared<c10::Event>(moment_of(current_stream(device_))),
                                  num_bytes] { return computed->query() ? num_bytes : 0; }};
    }

    /// Nothing is given to the idle stream, so what its pool has is free at once.
    MemoryPart take(size_t num_bytes) override {
        return {stream_memory(idle_, computing_, num_bytes), num_bytes, true};
    }

    std::unique_ptr<Delivery> deliver(MemoryPart taken) override { return std::make_unique<InPlace>(std::move(taken)); }

  private:
    class InPlace final : public Delivery {
      public:
        explicit InPlace(MemoryPart part) : part_(std::move(part)) {}
        void advance(size_t) override {}
        MemoryPart finish() override { return std::move(part_); }

      private:
        MemoryPart part_;
    };

    at::Device device_;
    c10::Stream computing_, idle_;
};

/// What a stream was given to copy, piece by piece.
class Copies {
  public:
    void add(c10::Event done, size_t end) { pieces_.emplace_back(std::move(done), end); }
    /// So many of the first bytes are copied.
    size_t done_bytes() {
        for (; !pieces_.empty() && pieces_.front().first.query(); pieces_.pop_front())
            done_bytes_ = pieces_.front().second;
        return done_bytes_;
    }

  private:
    std::deque<std::pair<c10::Event, size_t>> pieces_;  ///< with their ends
    size_t done_bytes_ = 0;
};

class StagedMemory final : public DeviceMemory {
  public:
    explicit StagedMemory(at::Device device)
        : device_(device),
          computing_(current_stream(device)),
          sending_(other_stream(device)),
          receiving_(other_stream(device)) {}

    void enter() override { start_device(device_); }

    size_t piece_bytes() const override { return kPieceBytes; }

    Outgoing send(MemoryPart part) override {
        MemoryPart staged = take(part.num_bytes);
        sending_.wait(moment_of(current_stream(device_)));
        const auto copies = std::make_shared<Copies>();
        std::optional<c10::Event> begun = timed_moment(sending_);
        for (size_t begin = 0; begin < part.num_bytes;) {
            const size_t end = std::min(begin + kPieceBytes, part.num_bytes);
            copy(staged, part, {begin, end}, sending_);
            copies->add(moment_of(sending_), end);
            begin = end;
        }
        note_time(std::move(begun), sending_);
        return {std::move(staged), [copies, part = std::move(part)] { return copies->done_bytes(); }};
    }

    MemoryPart take(size_t num_bytes) override {
        const auto options = at::TensorOptions(at::kByte).pinned_memory(device_.is_cuda());
        return part_of(at::empty({static_cast<int64_t>(num_bytes)}, options), num_bytes);
    }

    std::unique_ptr<Delivery> deliver(MemoryPart taken) override {
        while (!delivered_.empty() && delivered_.front().first.query()) delivered_.pop_front();
        return std::make_unique<ToDevice>(*this, std::move(taken));
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
    struct Piece {
        size_t begin, end;
    };

    class ToDevice final : public Delivery {
      public:
        ToDevice(StagedMemory& memory, MemoryPart taken)
            : memory_(memory),
              taken_(std::move(taken)),
              part_{stream_memory(memory.receiving_, memory.computing_, taken_.num_bytes), taken_.num_bytes, true},
              begun_(memory.timed_moment(memory.receiving_)) {}
        ~ToDevice() override {
            if (copied_) memory_.delivered_.emplace_back(std::move(*copied_), std::move(taken_));
        }

        void advance(size_t num_bytes) override {
            if (num_bytes == copied_bytes_) return;
            memory_.copy(part_, taken_, {copied_bytes_, num_bytes}, memory_.receiving_);
            copied_ = moment_of(memory_.receiving_);
            copied_bytes_ = num_bytes;
        }

        MemoryPart finish() override {
            advance(taken_.num_bytes);
            memory_.note_time(std::move(begun_), memory_.receiving_);
            current_stream(memory_.device_).wait(*copied_);
            return std::move(part_);
        }

      private:
        StagedMemory& memory_;
        MemoryPart taken_, part_;
        std::optional<c10::Event> begun_, copied_;
        size_t copied_bytes_ = 0;
    };

    at::Tensor over(const MemoryPart& part, const Piece& piece) const {
        const at::Device place = part.is_on_device ? device_ : at::Device(at::kCPU);
        const auto options = at::TensorOptions(at::kByte).device(place);
        const auto num_bytes = static_cast<int64_t>(piece.end - piece.begin);
        return at::from_blob(
            part.data.get() + piece.begin, {num_bytes}, {1}, [](void*) {}, options, place);
    }

    void copy(const MemoryPart& to, const MemoryPart& from, const Piece& piece, const c10::Stream& stream) {
        const c10::StreamGuard guard(stream);
        over(to, piece).copy_(over(from, piece), /*non_blocking=*/true);
    }

    std::optional<c10::Event> timed_moment(const c10::Stream& stream) {
        return is_timed_ ? std::optional(timed_moment_of(stream)) : std::nullopt;
    }

    void note_time(std::optional<c10::Event> begun, const c10::Stream& stream) {
        if (begun) timed_.emplace_back(std::move(*begun), timed_moment_of(stream));
    }

    at::Device device_;
    c10::Stream computing_, sending_, receiving_;
    std::deque<std::pair<c10::Event, MemoryPart>> delivered_;  ///< kept until it is copied
    bool is_timed_ = false;
    std::vector<std::pair<c10::Event, c10::Event>> timed_;  ///< begin and end of what was moved
};

}  // namespace

std::unique_ptr<DeviceMemory> make_device_memory(at::Device device) {
    return std::make_unique<TorchDeviceMemory>(device);
}

std::unique_ptr<DeviceMemory> make_staged_memory(at::Device device) {
    return std::make_unique<StagedMemory>(device);
}

}  // namespace vpp
