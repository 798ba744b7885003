#include "comm/inquiry.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/units.hpp"

namespace vpp {

namespace {

constexpr size_t kMaxPositionBytes = 200;
constexpr size_t kMaxNamedRanks = 8;

std::string seconds_text(double seconds) {
    return fixed_text(seconds, 1) + " s";
}

std::string rank_list(const std::vector<int>& ranks) {
    std::string text = ranks.size() == 1 ? "rank " : "ranks ";
    for (size_t i = 0; i < ranks.size(); ++i) {
        if (i > 0) text += i + 1 == ranks.size() ? " and " : ", ";
        text += std::to_string(ranks[i]);
    }
    return text;
}

std::string silent_text(const Inquiry& inquiry, std::vector<int> silent) {
    double heard_seconds = 0;
    for (const int rank : silent) {
        heard_seconds = std::max(heard_seconds, inquiry.heard_seconds[static_cast<size_t>(rank)]);
    }
    const size_t num_silent = silent.size();
    if (num_silent > kMaxNamedRanks) silent.resize(kMaxNamedRanks);
    std::string text = rank_list(silent);
    if (num_silent > silent.size()) text += " and " + std::to_string(num_silent - silent.size()) + " more";
    return text + (num_silent == 1 ? " is" : " are") + " silent (stopped, ended or unreachable; last heard of " +
           seconds_text(heard_seconds) + " ago)";
}

/// Follows who waits for whom, from the peer of the asking rank on; `chain` gets the ranks that are told of.
std::string chain_text(const Inquiry& inquiry, std::vector<int>& chain) {
    chain = {inquiry.rank};
    std::string text;
    for (int rank = inquiry.answers[static_cast<size_t>(inquiry.rank)]->wait->peer;;) {
        const auto& status = inquiry.answers[static_cast<size_t>(rank)];
        const auto seen = std::find(chain.begin(), chain.end(), rank);
        if (seen != chain.end()) {
            const std::vector<int> ring(seen, chain.end());
            return text + "; so " + rank_list(ring) +
                   (ring.size() == 1 ? " waits for itself" : " wait for one another");
        }
        if (!status || chain.size() > kMaxNamedRanks) return text;
        text += "; " + to_text(rank, *status);
        chain.push_back(rank);
        if (!status->wait) return text;
        rank = status->wait->peer;
    }
}

/// Where the ranks are that answered and that nobody told of.
std::string others_text(const Inquiry& inquiry, const std::vector<int>& told) {
    std::string text;
    size_t num_named = 0;
    for (size_t rank = 0; rank < inquiry.answers.size() && num_named < kMaxNamedRanks; ++rank) {
        const auto own = static_cast<int>(rank);
        if (!inquiry.answers[rank] || std::find(told.begin(), told.end(), own) != told.end()) continue;
        text += (num_named++ == 0 ? "; meanwhile " : ", ") + to_text(own, *inquiry.answers[rank]);
    }
    return text;
}

std::string size_text(const Wait& wait) {
    if (wait.num_bytes == kAnySize) return "";
    const std::string bytes = bytes_text(static_cast<int64_t>(wait.num_bytes));
    return wait.kind == Wait::Kind::Receive ? " (at most " + bytes + ")" : " (" + bytes + ")";
}

}  // namespace

std::string to_text(const Wait& wait) {
    const bool receives = wait.kind == Wait::Kind::Receive;
    return "has waited " + seconds_text(wait.seconds) + " for rank " + std::to_string(wait.peer) +
           (receives ? " to send " : " to take ") + to_text(wait.channel) + size_text(wait);
}

std::string to_text(int rank, const RankStatus& status) {
    return "rank " + std::to_string(rank) + " (" + status.position + ") " +
           (status.wait ? to_text(*status.wait) : "has computed for " + seconds_text(status.position_seconds));
}

Bytes encode(const RankStatus& status) {
    ByteWriter writer;
    writer.put_text(std::string_view(status.position).substr(0, kMaxPositionBytes));
    writer.put(status.position_seconds);
    writer.put<uint8_t>(status.wait ? 1 : 0);
    if (status.wait) {
        writer.put(static_cast<uint8_t>(status.wait->kind));
        writer.put(status.wait->peer);
        writer.put(status.wait->channel);
        writer.put(status.wait->num_bytes);
        writer.put(status.wait->seconds);
    }
    return writer.take();
}

RankStatus decode_rank_status(std::span<const std::byte> bytes) {
    ByteReader reader(bytes);
    RankStatus status;
    status.position = printable(reader.get_text());
    status.position_seconds = reader.get<double>();
    if (reader.get<uint8_t>() != 0) {
        Wait wait;
        wait.kind = reader.get<uint8_t>() == 0 ? Wait::Kind::Receive : Wait::Kind::Send;
        wait.peer = reader.get<int>();
        wait.channel = reader.get<Channel>();
        wait.num_bytes = reader.get<size_t>();
        wait.seconds = reader.get<double>();
        status.wait = wait;
    }
    return status;
}

std::string lost_text(const Inquiry& inquiry) {
    const RankStatus& own = *inquiry.answers[static_cast<size_t>(inquiry.rank)];
    std::vector<int> silent;
    for (size_t rank = 0; rank < inquiry.answers.size(); ++rank) {
        if (!inquiry.answers[rank]) silent.push_back(static_cast<int>(rank));
    }
    std::string text = to_text(inquiry.rank, own);
    text += silent.empty() ? "; every rank answers" : "; " + silent_text(inquiry, silent);
    std::vector<int> chain;
    text += chain_text(inquiry, chain);
    text += others_text(inquiry, chain);
    for (size_t i = 0; i < inquiry.unposted.size(); ++i) {
        text += i == 0 ? "; it has sent what nobody here expects: " : ", ";
        text += to_text(inquiry.unposted[i]);
    }
    return text;
}

}  // namespace vpp
