#include "engine/reading_time.hpp"

#include <algorithm>

#include "base/bytes.hpp"
#include "comm/collective.hpp"

namespace vpp {

namespace {

constexpr double kFirstSeconds = 300, kSlowestBytesPerSecond = 10e6;

uint64_t most_of_all_ranks(Transport& transport, uint64_t own) {
    ByteWriter writer;
    writer.put(own);
    uint64_t most = 0;
    for (const Bytes& bytes : all_gather(transport, writer.take())) {
        most = std::max(most, ByteReader(bytes).get<uint64_t>());
    }
    return most;
}

}  // namespace

double reading_seconds(uint64_t bytes) {
    return kFirstSeconds + static_cast<double>(bytes) / kSlowestBytesPerSecond;
}

ReadingTime::ReadingTime(Transport& transport, uint64_t own_bytes)
    : transport_(transport), before_seconds_(transport.deadline_seconds()) {
    const uint64_t bytes = most_of_all_ranks(transport, own_bytes);
    transport.set_deadline(std::max(before_seconds_, reading_seconds(bytes)));
}

ReadingTime::~ReadingTime() {
    transport_.set_deadline(before_seconds_);
}

void ReadingTime::wait_for_all() {
    barrier(transport_);
}

}  // namespace vpp
