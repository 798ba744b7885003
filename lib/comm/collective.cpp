#include "comm/collective.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.hpp"
#include "base/few.hpp"

namespace vpp {

namespace {

enum class Call : uint32_t { Broadcast = 1, Gather, AllGather, Barrier, CheckEqual };

constexpr const char* kCallNames[] = {"?", "broadcast", "gather", "all_gather", "barrier", "check_equal"};

/// Goes first on its own channel: which call this is, and how long the content is that follows.
struct Head {
    uint64_t num_bytes = 0;
    Call call = Call::Barrier;
    uint32_t unused = 0;
};

constexpr Channel kHeadChannel{kCollectiveHead, 0, Direction::Control};
constexpr Channel kContentChannel{kCollectiveContent, 0, Direction::Control};

constexpr int kRoot = 0;
constexpr size_t kShownValueBytes = 200;

void send_bytes(Transport& transport, int peer, const Channel& channel, std::span<const std::byte> bytes) {
    Buffer message(bytes.size());
    std::copy(bytes.begin(), bytes.end(), message.bytes().begin());
    transport.send(peer, channel, std::move(message));
}

void send_content(Transport& transport, int peer, Call call, const Bytes& bytes) {
    send_bytes(transport, peer, kHeadChannel, bytes_of(Head{bytes.size(), call}));
    if (!bytes.empty()) send_bytes(transport, peer, kContentChannel, bytes);
}

const char* name_of(Call call) {
    const auto index = static_cast<size_t>(call);
    return index < std::size(kCallNames) ? kCallNames[index] : kCallNames[0];
}

Bytes receive_content(Transport& transport, int peer, Call call) {
    transport.post_receive(peer, kHeadChannel, sizeof(Head));
    const Buffer received = transport.receive(peer, kHeadChannel);
    const Head head = ByteReader(received.bytes()).get<Head>();
    if (head.call != call) {
        throw Error(ErrorKind::RanksDisagree, "rank " + std::to_string(transport.rank()) + " is in " + name_of(call) +
                                                  " while rank " + std::to_string(peer) + " is in " +
                                                  name_of(head.call));
    }
    if (head.num_bytes == 0) return {};
    transport.post_receive(peer, kContentChannel, head.num_bytes);
    const Buffer content = transport.receive(peer, kContentChannel);
    return {content.bytes().begin(), content.bytes().end()};
}

Bytes broadcast_as(Transport& transport, Call call, Bytes bytes) {
    if (transport.rank() != kRoot) return receive_content(transport, kRoot, call);
    for (int peer = 1; peer < transport.size(); ++peer) send_content(transport, peer, call, bytes);
    return bytes;
}

std::vector<Bytes> gather_as(Transport& transport, Call call, Bytes bytes) {
    if (transport.rank() != kRoot) {
        send_content(transport, kRoot, call, bytes);
        return {};
    }
    std::vector<Bytes> all(static_cast<size_t>(transport.size()));
    all[kRoot] = std::move(bytes);
    for (int peer = 1; peer < transport.size(); ++peer) {
        all[static_cast<size_t>(peer)] = receive_content(transport, peer, call);
    }
    return all;
}

/// Where the first line begins that is not the same in all texts.
size_t first_difference(const std::vector<std::string>& texts) {
    size_t same = texts.front().size();
    for (const std::string& text : texts) {
        const auto [end, other] = std::ranges::mismatch(texts.front(), text);
        same = std::min(same, static_cast<size_t>(end - texts.front().begin()));
    }
    const size_t line_end = same == 0 ? std::string::npos : texts.front().rfind('\n', same - 1);
    return line_end == std::string::npos ? 0 : line_end + 1;
}

/// The line that begins there.
std::string line_at(const std::string& text, size_t begin) {
    return text.substr(begin, text.find('\n', begin) - begin);
}

/// "ranks 0, 1 have "a", rank 2 has "b""; empty when all are equal.
std::string difference_text(const std::vector<Bytes>& values) {
    std::map<std::string, std::vector<int>> ranks_of;
    std::vector<std::string> order;
    for (size_t rank = 0; rank < values.size(); ++rank) {
        std::vector<int>& ranks = ranks_of[to_string(values[rank])];
        if (ranks.empty()) order.push_back(to_string(values[rank]));
        ranks.push_back(static_cast<int>(rank));
    }
    if (order.size() == 1) return "";
    const size_t begin = first_difference(order);
    std::string text;
    for (const std::string& whole : order) {
        const std::vector<int>& ranks = ranks_of[whole];
        const std::string value = line_at(whole, begin);
        text += (text.empty() ? "" : "; ") + ranks_text(ranks);
        const bool cut = value.size() > kShownValueBytes;
        text += ranks.size() == 1 ? " has \"" : " have \"";
        text += printable(value.substr(0, kShownValueBytes)) + (cut ? "...\"" : "\"");
    }
    return text;
}

}  // namespace

Bytes broadcast(Transport& transport, Bytes bytes) {
    return broadcast_as(transport, Call::Broadcast, std::move(bytes));
}

std::string from_first_rank(Transport& transport, const std::function<std::string()>& make) {
    ByteWriter writer;
    if (transport.rank() == kRoot) {
        try {
            const std::string text = make();
            writer.put(0);
            writer.put_text(text);
        } catch (const Error& error) {
            writer = ByteWriter();
            writer.put(exit_code(error.kind()));
            writer.put_text(error.what());
        }
    }
    const Bytes bytes = broadcast(transport, writer.take());
    ByteReader reader(bytes);
    const auto code = reader.get<int>();
    std::string text = reader.get_text();
    if (code != 0) throw Error(static_cast<ErrorKind>(code), text);
    return text;
}

std::vector<Bytes> gather(Transport& transport, Bytes bytes) {
    return gather_as(transport, Call::Gather, std::move(bytes));
}

std::vector<Bytes> all_gather(Transport& transport, Bytes bytes) {
    const std::vector<Bytes> parts = gather_as(transport, Call::AllGather, std::move(bytes));
    ByteWriter writer;
    for (const Bytes& part : parts) {
        writer.put<uint64_t>(part.size());
        writer.append(part);
    }
    const Bytes packed = broadcast_as(transport, Call::AllGather, writer.take());
    ByteReader reader(packed);
    std::vector<Bytes> all;
    for (int rank = 0; rank < transport.size(); ++rank) {
        const auto part = reader.take(reader.get<uint64_t>());
        all.emplace_back(part.begin(), part.end());
    }
    return all;
}

bool is_everywhere(Transport& transport, bool is_here) {
    const Bytes yes{std::byte{1}};
    const std::vector<Bytes> all = all_gather(transport, is_here ? yes : Bytes{});
    return std::ranges::count(all, yes) == transport.size();
}

void barrier(Transport& transport) {
    gather_as(transport, Call::Barrier, {});
    broadcast_as(transport, Call::Barrier, {});
}

void check_equal(Transport& transport, const std::string& what, const std::string& value) {
    const std::vector<Bytes> values = gather_as(transport, Call::CheckEqual, to_bytes(value));
    const std::string own = values.empty() ? "" : difference_text(values);
    const std::string difference = to_string(broadcast_as(transport, Call::CheckEqual, to_bytes(own)));
    if (difference.empty()) return;
    throw Error(ErrorKind::RanksDisagree, what + " differs between ranks: " + difference +
                                              "; try to start every rank with the same program and the same files");
}

}  // namespace vpp
