#pragma once
// All that is decided before a device is touched. Rank 0 prepares it (program/prepare.hpp), every rank gets its bytes;
// everything behind it reads the Program and decides nothing of that again.
#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes.hpp"
#include "base/hash.hpp"
#include "data/fields.hpp"
#include "graph/balance.hpp"
#include "graph/graph.hpp"
#include "graph/stages.hpp"
#include "mesh/mesh.hpp"
#include "schedule/costs.hpp"
#include "schedule/schedule.hpp"
#include "schedule/search.hpp"

namespace vpp {

/// A graph, cut, with the actions that run it: training has one, evaluation another.
struct Phase {
    Graph graph;
    Split split;
    Schedule schedule;  ///< lowered and proven

    /// Whether that PP rank has the stage whose loss it is.
    bool makes_losses(int pp_rank) const;
};

struct Program {
    std::string plan_text;  ///< the resolved plan
    Mesh mesh;
    /// Replicas that each rank runs one after the other, replica 0 last, since its buffers are the model's: 1, but in
    /// the reference of a mesh with several replicas all of them. More than 1 only where mesh.dp is 1.
    int replicas_per_rank = 1;
    Fields fields;                ///< of the training data
    int64_t microbatch_size = 1;  ///< samples
    Phase training;               ///< empty where only evaluation is wanted
    std::optional<Phase> evaluation;
    std::string data_digest;             ///< of training and validation data
    std::string token_types;             ///< of the training data (data/dataset.hpp)
    ScheduleCosts costs;                 ///< of the training schedule; transfers by edge
    std::string cost_unit, cost_source;  ///< as in CostModel (program/cost_model.hpp)
    bool has_measured_costs = false;     ///< they are from a cost file
    std::optional<SearchRecord> search;  ///< how AUTO came to the schedule
    std::optional<Balance> balance;      ///< how AUTO came to the cuts; times in cost_unit

    int num_replicas() const { return mesh.dp * replicas_per_rank; }
    bool has_training() const { return !training.graph.ops.empty(); }
    /// The stages of a PP rank, ascending; the same in both phases. Requires: has_training().
    std::vector<int> stages_of(int pp_rank) const { return training.schedule.stages_of(pp_rank); }
};

/// The program as bytes (CBOR), and back. Throws Error{BadData} for bytes that are none.
Bytes to_bytes(const Program& program);
Program program_from_bytes(std::span<const std::byte> bytes);

/// The digest of its bytes.
Digest digest_of(const Program& program);

}  // namespace vpp
