#pragma once
// What the tests between the ranks of one mpirun share: their session, messages that nobody else sends, and a device
// that computes when it is told so. Every rank runs every test, in the same order.
#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "base/hash.hpp"
#include "base/random.hpp"
#include "comm/device_memory.hpp"
#include "comm/mpi_session.hpp"
#include "comm/transport.hpp"

namespace vpp::ranks {

inline MpiSession* session = nullptr;  // set by main; the tests have no other way to get it

inline Channel forward(int edge, int microbatch = 0) {
    return {edge, microbatch, Direction::Forward};
}

/// Bytes that only this sender, receiver and number give.
inline Buffer content_of(int sender, int receiver, int number, size_t num_bytes) {
    Buffer buffer(num_bytes);
    uint64_t key = combine_key(combine_key(static_cast<uint64_t>(sender), static_cast<uint64_t>(receiver)),
                               static_cast<uint64_t>(number));
    for (std::byte& byte : buffer.bytes())
        byte = static_cast<std::byte>((key = key * 6364136223846793005ULL + 1) >> 56);
    return buffer;
}

/// The same message with what is behind its first bytes somewhere else.
inline Buffer parted(Buffer whole, size_t begin_bytes) {
    const MemoryPart rest{{whole.owner(), whole.owner().get() + begin_bytes}, whole.bytes().size() - begin_bytes};
    Buffer message(begin_bytes);
    std::copy_n(whole.bytes().begin(), begin_bytes, message.bytes().begin());
    message.set_part(rest);
    return message;
}

/// Memory of a device that is the host's, and computes when it is told so. Staged, its messages go from and to others.
class SlowDevice : public DeviceMemory {
  public:
    SlowDevice(std::shared_ptr<std::atomic<int>> num_computed, bool is_staged)
        : num_computed_(std::move(num_computed)), is_staged_(is_staged) {}
    void enter() override {}
    size_t piece_bytes() const override { return 3000; }
    Outgoing send(MemoryPart part) override {
        const MemoryPart from = part;
        if (is_staged_) part = take(part.num_bytes);
        return {part, [=, computed = num_computed_, number = ++num_given_]() -> size_t {
                    if (*computed < number) return 0;
                    if (from.data != part.data) std::copy_n(from.data.get(), from.num_bytes, part.data.get());
                    return part.num_bytes;
                }};
    }
    MemoryPart take(size_t num_bytes) override { return {Buffer(num_bytes).owner(), num_bytes, !is_staged_}; }
    std::unique_ptr<Delivery> deliver(MemoryPart taken) override {
        MemoryPart own = taken;
        if (is_staged_) own = {Buffer(taken.num_bytes).owner(), taken.num_bytes, true};
        return std::make_unique<Copy>(std::move(taken), std::move(own));
    }

  private:
    /// Each byte when it is said to have come.
    class Copy : public Delivery {
      public:
        Copy(MemoryPart taken, MemoryPart own) : taken_(std::move(taken)), own_(std::move(own)) {}
        void advance(size_t num_bytes) override {
            std::copy(taken_.data.get() + num_copied_, taken_.data.get() + num_bytes, own_.data.get() + num_copied_);
            num_copied_ = num_bytes;
        }
        MemoryPart finish() override { return own_; }

      private:
        MemoryPart taken_, own_;
        size_t num_copied_ = 0;
    };

    std::shared_ptr<std::atomic<int>> num_computed_;
    bool is_staged_;
    int num_given_ = 0;
};

/// The same bytes with all behind the first `begin_bytes` on a device.
inline Buffer on_device(const Buffer& whole, size_t begin_bytes) {
    Buffer message = parted(whole, begin_bytes);
    MemoryPart part = message.part();
    part.is_on_device = true;
    message.set_part(part);
    return message;
}

inline Buffer in_one_piece(const Buffer& message) {
    Buffer whole(message.size_bytes());
    const auto end = std::copy(message.bytes().begin(), message.bytes().end(), whole.bytes().begin());
    std::copy_n(message.part().data.get(), message.part().num_bytes, end);
    return whole;
}

}  // namespace vpp::ranks
