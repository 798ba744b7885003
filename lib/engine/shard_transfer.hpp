#pragma once
// Shards of a checkpoint from one run folder of a job to another, piece by piece over the transport.
#include <cstddef>
#include <vector>

#include "comm/transport.hpp"
#include "engine/job_checkpoint.hpp"

namespace vpp {

/// One shard on its way; the ranks keep their folders.
struct ShardTransfer {
    size_t shard = 0;  ///< in the order of the manifest
    int from = 0;
    int to = 0;
};

/// The lowest rank whose folder holds the shard.  Requires: there is one.
int source_of(const JobCheckpoint& checkpoint, size_t shard);

/// Makes all transfers, one after another, in pieces, so that neither side holds more than a few of them in memory. A
/// folder that has no part of the checkpoint gets the manifest first. A shard gets its name when its digest is right.
/// Afterwards parts say what every folder holds. Leaves the transport with a deadline that fits the sizes.
/// Calls:    collective.
/// Requires: the same transfers on every rank.
/// Throws:   as ArrivingShard and write_part.
void transfer_shards(Transport& transport, JobCheckpoint& checkpoint, const std::vector<ShardTransfer>& transfers);

}  // namespace vpp
