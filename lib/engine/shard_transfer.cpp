#include "engine/shard_transfer.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/file.hpp"
#include "checkpoint/part.hpp"
#include "engine/reading_time.hpp"

namespace vpp {

namespace {

constexpr Channel kPieceChannel{kShardPiece, 0, Direction::Control};
constexpr uint64_t kPieceBytes = uint64_t{4} << 20;

/// Calls `piece` with the length of each piece.
template <class Piece>
void for_each_piece(uint64_t size_bytes, const Piece& piece) {
    for (uint64_t done = 0; done < size_bytes; done += kPieceBytes) {
        piece(done, std::min(kPieceBytes, size_bytes - done));
    }
}

void send_shard(Transport& transport, int peer, const std::filesystem::path& path, uint64_t size_bytes) {
    const InputFile file(path);
    for_each_piece(size_bytes, [&](uint64_t begin, uint64_t length) {
        Buffer piece(length);
        file.read(begin, piece.bytes());
        transport.send(peer, kPieceChannel, std::move(piece));
        transport.finish_sends();
    });
}

void receive_shard(Transport& transport, int peer, const std::filesystem::path& folder, const ShardRecord& shard) {
    ArrivingShard arriving(folder, shard);
    for_each_piece(shard.size_bytes, [&](uint64_t, uint64_t length) {
        transport.post_receive(peer, kPieceChannel, length);
        arriving.add(transport.receive(peer, kPieceChannel).bytes());
    });
    arriving.finish();
}

}  // namespace

int source_of(const JobCheckpoint& checkpoint, size_t shard) {
    for (const auto& [keeper, part] : checkpoint.parts) {
        if (part.holds[shard]) return keeper;
    }
    check(false, "some folder holds every shard");
    return -1;
}

void transfer_shards(Transport& transport, JobCheckpoint& checkpoint, const std::vector<ShardTransfer>& transfers) {
    const Manifest& manifest = checkpoint.manifest;
    uint64_t all_bytes = 0;
    for (const ShardTransfer& transfer : transfers) all_bytes += manifest.shards[transfer.shard].size_bytes;
    ReadingTime time(transport, all_bytes);  // who takes part in no transfer waits for all of them
    transport.set_position("bringing shards of step " + std::to_string(manifest.state.step) + " where they are needed");
    const auto own = checkpoint.parts.find(transport.rank());
    if (own != checkpoint.parts.end() && !own->second.is_there) write_part(own->second.folder, manifest);
    for (const ShardTransfer& transfer : transfers) {
        const ShardRecord& shard = manifest.shards[transfer.shard];
        if (transport.rank() == transfer.from) {
            send_shard(transport, transfer.to, own->second.folder / shard.file, shard.size_bytes);
        } else if (transport.rank() == transfer.to) {
            receive_shard(transport, transfer.from, own->second.folder, shard);
        }
        checkpoint.parts.at(transfer.to).holds[transfer.shard] = true;
    }
    for (auto& [keeper, part] : checkpoint.parts) part.is_there = true;
    time.wait_for_all();
}

}  // namespace vpp
