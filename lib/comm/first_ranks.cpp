#include "comm/first_ranks.hpp"

#include <utility>

#include "base/error.hpp"

namespace vpp {

FirstRanks::FirstRanks(Transport& job, int size) : PassingTransport(job), size_(size) {
    check(size >= 1 && size <= job.size() && job.rank() < size, "this rank is one of the first ranks");
}

void FirstRanks::check_peer(int peer) const {
    check(peer >= 0 && peer < size_, "a peer is one of the first ranks");
}

void FirstRanks::send(int peer, const Channel& channel, Buffer message) {
    check_peer(peer);
    PassingTransport::send(peer, channel, std::move(message));
}

void FirstRanks::post_receive(int peer, const Channel& channel, size_t capacity_bytes) {
    check_peer(peer);
    PassingTransport::post_receive(peer, channel, capacity_bytes);
}

void FirstRanks::exchange(Exchange messages) {
    for (int rank : messages.ranks) check_peer(rank);
    PassingTransport::exchange(std::move(messages));
}

Buffer FirstRanks::receive(int peer, const Channel& channel) {
    check_peer(peer);
    return PassingTransport::receive(peer, channel);
}

bool FirstRanks::has_arrived(int peer, const Channel& channel) {
    check_peer(peer);
    return PassingTransport::has_arrived(peer, channel);
}

}  // namespace vpp
