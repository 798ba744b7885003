#include "engine/run_folders.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <system_error>

#include "base/error.hpp"
#include "base/few.hpp"
#include "base/file.hpp"
#include "base/hash.hpp"
#include "base/process.hpp"
#include "comm/collective.hpp"

namespace vpp {

namespace fs = std::filesystem;

namespace {

std::string new_marker_name() {
    std::random_device device;
    return ".rank-" + to_hex({(uint64_t{device()} << 32) | device(), (uint64_t{device()} << 32) | device()});
}

/// Whether the file is there now.
bool write_marker(const fs::path& path) {
    try {
        OutputFile(path).finish();
        return true;
    } catch (const Error&) {
        return false;
    }
}

/// The same for all processes of a host, whatever path they have for the folder; empty where it is not known.
std::string identity_of(const fs::path& folder) {
    struct stat info {};
    const std::string host = host_id();
    if (host.empty() || ::stat(folder.c_str(), &info) != 0) return "";
    return host + ' ' + std::to_string(info.st_dev) + ' ' + std::to_string(info.st_ino);
}

/// What a rank tells the others.
struct Marker {
    std::string host, name, identity;
    bool is_written = false;
};

std::vector<Marker> exchange_markers(Transport& transport, const Marker& own) {
    ByteWriter writer;
    writer.put_text(own.host);
    writer.put_text(own.name);
    writer.put_text(own.identity);
    writer.put(own.is_written);
    std::vector<Marker> markers;
    for (const Bytes& bytes : all_gather(transport, writer.take())) {
        ByteReader reader(bytes);
        Marker& marker = markers.emplace_back();
        marker.host = reader.get_text();
        marker.name = reader.get_text();
        marker.identity = reader.get_text();
        marker.is_written = reader.get<bool>();
    }
    return markers;
}

/// By rank: whose files it sees.
std::vector<std::vector<int>> look(Transport& transport, const fs::path& folder, const std::vector<Marker>& markers) {
    ByteWriter writer;
    for (size_t rank = 0; rank < markers.size(); ++rank) {
        // By its name, which nobody has asked for before: network file systems remember lists of folders for a while.
        std::error_code problem;
        if (markers[rank].is_written && fs::exists(folder / markers[rank].name, problem)) {
            writer.put(static_cast<int>(rank));
        }
    }
    std::vector<std::vector<int>> seen;
    for (const Bytes& bytes : all_gather(transport, writer.take())) {
        ByteReader reader(bytes);
        std::vector<int>& ranks = seen.emplace_back();
        while (!reader.empty()) ranks.push_back(reader.get<int>());
    }
    return seen;
}

/// The same where nobody can write: ranks whose folder is one on their host. Hosts that share a disk do not learn it.
std::vector<std::vector<int>> compare_identities(const std::vector<Marker>& markers) {
    std::vector<std::vector<int>> seen(markers.size());
    for (size_t rank = 0; rank < markers.size(); ++rank) {
        for (size_t other = 0; other < rank; ++other) {
            const bool is_known = !markers[rank].identity.empty();
            if (is_known && markers[rank].identity == markers[other].identity) {
                seen[rank].push_back(static_cast<int>(other));
            }
        }
    }
    return seen;
}

/// Ranks of which one sees a file of the other have one folder: the lowest of them all keeps it.
std::vector<int> keepers_by(const std::vector<std::vector<int>>& seen) {
    std::vector<int> keepers(seen.size());
    std::iota(keepers.begin(), keepers.end(), 0);
    for (size_t rank = 0; rank < seen.size(); ++rank) {
        for (int other : seen[rank]) {
            const auto [low, high] = std::minmax(keepers[rank], keepers[static_cast<size_t>(other)]);
            std::replace(keepers.begin(), keepers.end(), int{high}, int{low});
        }
    }
    return keepers;
}

}  // namespace

RunFolders RunFolders::find(Transport& transport, const fs::path& folder) {
    if (transport.size() == 1) return {};
    transport.set_position("finding out which ranks share " + folder.string());
    Marker own{printable(host_name()), new_marker_name(), identity_of(folder)};
    own.is_written = write_marker(folder / own.name);
    const std::vector<Marker> markers = exchange_markers(transport, own);
    const bool is_read_only = std::ranges::none_of(markers, &Marker::is_written);
    const auto seen = is_read_only ? compare_identities(markers) : look(transport, folder, markers);
    std::error_code ignored;
    if (own.is_written) fs::remove(folder / own.name, ignored);
    std::vector<std::string> hosts;
    for (const Marker& marker : markers) hosts.push_back(marker.host);
    return {keepers_by(seen), std::move(hosts)};
}

RunFolders::RunFolders(std::vector<int> keepers, std::vector<std::string> hosts)
    : keepers_(std::move(keepers)), hosts_(std::move(hosts)) {
    check(keepers_.size() == hosts_.size(), "every rank has a host");
    for (int keeper : keepers_) check(keeper_of(keeper) == keeper, "the keeper of a folder keeps its own");
}

bool RunFolders::is_one() const {
    return std::ranges::all_of(keepers_, [](int keeper) { return keeper == 0; });
}

std::vector<int> RunFolders::keepers() const {
    std::vector<int> keepers(keepers_.begin(), keepers_.end());
    if (keepers.empty()) keepers.push_back(0);
    std::sort(keepers.begin(), keepers.end());
    keepers.erase(std::unique(keepers.begin(), keepers.end()), keepers.end());
    return keepers;
}

std::string RunFolders::who(int rank) const {
    const std::string text = "rank " + std::to_string(rank);
    return hosts_.empty() ? text : text + " on " + hosts_.at(static_cast<size_t>(rank));
}

std::string RunFolders::text() const {
    std::string text;
    for (int keeper : keepers()) {
        std::vector<int> ranks;
        for (size_t rank = 0; rank < keepers_.size(); ++rank) {
            if (keepers_[rank] == keeper) ranks.push_back(static_cast<int>(rank));
        }
        text += (text.empty() ? "" : "; ") + ranks_text(ranks) + " on " + hosts_.at(static_cast<size_t>(keeper));
    }
    return text;
}

}  // namespace vpp
