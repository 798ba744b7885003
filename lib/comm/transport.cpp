#include "comm/transport.hpp"

#include <algorithm>
#include <tuple>

#include "base/block_cache.hpp"
#include "base/error.hpp"
#include "base/live_bytes.hpp"
#include "base/units.hpp"
#include "comm/device_memory.hpp"

namespace vpp {

namespace {

constexpr size_t kAlignmentBytes = 64;
constexpr size_t kMaxCapacityBytes = size_t{1} << 46;

}  // namespace

void set_times(std::vector<PartSpan>& spans, const std::vector<std::pair<int64_t, int64_t>>& times) {
    check(times.size() == spans.size(), "every part that was moved has its times");
    for (size_t i = 0; i < times.size(); ++i) std::tie(spans[i].begin, spans[i].end) = times[i];
}

void Transport::carry(std::unique_ptr<DeviceMemory>) {}

// An empty message also owns memory, so that it differs from no message at all.
Buffer::Buffer(size_t capacity_bytes) : size_(capacity_bytes) {
    void* memory = nullptr;
    size_t taken = 0;
    if (capacity_bytes <= kMaxCapacityBytes) {
        const size_t num_lines = std::max<size_t>(1, (capacity_bytes + kAlignmentBytes - 1) / kAlignmentBytes);
        taken = num_lines * kAlignmentBytes;
        memory = BlockCache::of_process().take(taken);
    }
    if (memory == nullptr) {
        throw Error(ErrorKind::OutOfMemory, "no memory for a message of " +
                                                bytes_text(static_cast<int64_t>(capacity_bytes)) +
                                                " between ranks; try a smaller microbatch");
    }
    const auto bytes = static_cast<int64_t>(taken);
    live_bytes::add(bytes);
    data_ = std::shared_ptr<std::byte>(static_cast<std::byte*>(memory), [bytes](std::byte* data) {
        live_bytes::add(-bytes);
        BlockCache::of_process().give(data);
    });
}

void Buffer::resize(size_t size_bytes) {
    check(size_bytes <= size_, "a message's memory can only be shortened");
    size_ = size_bytes;
}

size_t place_of(int rank, const std::vector<int>& ranks) {
    const auto place = std::find(ranks.begin(), ranks.end(), rank);
    check(place != ranks.end(), "a rank is one of its group");
    return static_cast<size_t>(place - ranks.begin());
}

void Transport::exchange(Exchange messages) {
    for (size_t i = 0; i < messages.ranks.size(); ++i) {
        const auto& [num_bytes, part_bytes] = messages.expected[i];
        if (num_bytes > 0) post_receive(messages.ranks[i], messages.channel, num_bytes + part_bytes);
    }
    for (size_t i = 0; i < messages.ranks.size(); ++i) {
        if (messages.sent[i]) send(messages.ranks[i], messages.channel, std::move(messages.sent[i]));
    }
}

Buffer joined(const Buffer& message) {
    const MemoryPart& part = message.part();
    check(!part.is_on_device, "this transport carries no memory of devices");
    Buffer whole(message.size_bytes());
    std::copy(message.bytes().begin(), message.bytes().end(), whole.bytes().begin());
    std::copy_n(part.data.get(), part.num_bytes, whole.bytes().data() + message.bytes().size());
    return whole;
}

std::string to_text(const Channel& channel) {
    if (channel.direction == Direction::Control) {
        return channel.edge < 0 ? "a collective call" : "control message " + std::to_string(channel.edge);
    }
    if (channel.direction == Direction::Replicas) {
        return "message " + std::to_string(channel.edge) + " between replicas";
    }
    const std::string direction = channel.direction == Direction::Forward ? "forward" : "backward";
    return direction + " edge " + std::to_string(channel.edge) + ", microbatch " + std::to_string(channel.microbatch);
}

}  // namespace vpp
