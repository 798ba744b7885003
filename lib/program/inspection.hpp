#pragma once
// What `vpp inspect` shows, as one plain value: it is computed once from plan and program, and report/ turns it into
// text, JSON, SVG, DOT and advice. Figures are predictions from shapes and FLOPs, or from a cost file.
// Bytes and FLOPs of a stage are those of one microbatch where they say so, else of the whole step.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "device/card_shares.hpp"
#include "graph/balance.hpp"
#include "plan/transports.hpp"
#include "schedule/costs.hpp"
#include "schedule/schedule.hpp"

namespace vpp {

/// A row of the tree of submodules, parents before their children. Neighbours of one class, structure and stage are one
/// row; what lies in several stages is opened until every row is in one or has no parts.
struct InspectedModule {
    int depth = 0;           ///< 0: the model
    std::string name;        ///< below its parent: "blocks", "0..5"; "(itself)" = ops that are in no submodule of it
    std::string path;        ///< full name, of the first one of a folded row
    std::string class_name;  ///< empty where it is not known
    int count = 1;           ///< submodules in this row
    int num_ops = 0;
    int64_t num_parameters = 0;   ///< buffers not counted; a tied weight where its first name is
    int64_t parameter_bytes = 0;  ///< buffers not counted
    double flops = 0;             ///< forward, one microbatch
    std::vector<int> stages;      ///< that run its ops, ascending; empty when it does nothing
};

/// A stage, with what its parameters and one microbatch take.
struct InspectedStage {
    int rank = 0;            ///< PP rank
    std::vector<int> ranks;  ///< of the job: its replicas
    int first_op = 0, last_op = 0;
    int whole_units = 0;  ///< units that lie in it
    int cut_units = 0;    ///< units of which a part lies in it
    int64_t num_parameters = 0;
    int64_t weight_bytes = 0;
    int64_t gradient_bytes = 0;
    int64_t optimizer_bytes = 0;  ///< without ZeRO-1
    int64_t buffer_bytes = 0;
    int64_t activation_bytes = 0;  ///< kept of one microbatch, at most
    int64_t receive_bytes = 0;     ///< what one microbatch brings to it from other ranks, forward and backward
    double flops = 0;              ///< forward, one microbatch
    double flops_share = 0;        ///< of the model, 0 to 1
    double time_share = 0;         ///< of the computing time of a step, 0 to 1
    std::string modules;           ///< "blocks.0 .. blocks.2"
};

/// A PP rank: memory at its fullest moment, and a step.
struct InspectedRank {
    std::vector<int> ranks;   ///< of the job
    std::vector<int> stages;  ///< ascending
    int64_t weight_bytes = 0, gradient_bytes = 0, optimizer_bytes = 0, buffer_bytes = 0;
    int64_t cast_bytes = 0;        ///< copies of weights in half precision
    int64_t activation_bytes = 0;  ///< of all microbatches in flight, at most
    int64_t recorded_bytes = 0;    ///< what recordings of its ops keep instead, on cards
    int64_t receive_bytes = 0;     ///< messages: buffers to receive, and what is sent and may not be gone, at most
    int64_t saved_copy_bytes = 0;  ///< from which a save in the background is written
    int64_t input_bytes = 0;       ///< training data that are read ahead, at most
    int64_t total_bytes = 0;
    int64_t recomputed_total_bytes = 0;  ///< what the total is with recompute = "stage"
    int64_t sent_bytes = 0;              ///< along the PP axis
    int64_t replica_bytes = 0;           ///< along the DP axis
    int64_t zero1_optimizer_bytes = 0, unshared_optimizer_bytes = 0;
    int in_flight = 0;      ///< stage activations held at once, at most
    double busy_share = 0;  ///< of a step, 0 to 1
    double load = 0;        ///< computing time over that of a mean rank

    /// Of the total what lies in the host's memory where the rank computes on a card.
    int64_t host_bytes() const { return saved_copy_bytes + input_bytes; }
};

/// An op that runs on the host, since cards have no kernel for it that gives the same bits every time.
struct InspectedHostOp {
    std::string kind, module;
    bool in_backward = false;  ///< only there
};

/// What one stage makes and a later one uses.
struct InspectedEdge {
    int id = 0;
    std::string name;  ///< of the value
    std::string type;  ///< "float32[2, 128]"; empty for plain values
    int producer = 0, consumer = 0;
    bool tied = false;               ///< a parameter that `producer` owns and `consumer` has a copy of
    std::optional<int> gradient_to;  ///< stage
    std::optional<int64_t> bytes;    ///< of one microbatch, one way; none for plain values
    int64_t step_bytes = 0;          ///< sent between ranks in a step, both ways
    bool per_step = false;           ///< a tied gradient that is summed once per step, outside the schedule
};

/// What a PP rank sends to another one in a step.
struct InspectedLink {
    int from = 0, to = 0;  ///< PP ranks
    int64_t forward_bytes = 0, backward_bytes = 0;
    int messages = 0;
};

/// A boundary between two stages, and a lighter one beside it.
struct InspectedCut {
    int op = 0;         ///< first op of the later stage
    int64_t bytes = 0;  ///< that live across it, one microbatch
    int better_op = 0;  ///< the legal cut with the fewest bytes that keeps the stages about as even; itself if none
    int64_t better_bytes = 0;
    double better_largest = 0;  ///< FLOPs of the larger of both stages then, over those now
    std::string better_after;   ///< submodule of the op in front of it
    double transfer_share = 0;  ///< time of a message over F of a mean stage
};

/// The schedule with another number of microbatches.
struct MicrobatchForecast {
    int num_microbatches = 0;
    double bubble = 0;  ///< 0 to 1
};

/// Ops of one row of the tree in one stage, for drawings; and what goes from one to another.
struct InspectedBlock {
    int module = 0;  ///< row of the tree
    int stage = 0;
    int num_ops = 0;
};
struct InspectedFlow {
    int from = 0, to = 0;  ///< blocks
    int64_t bytes = 0;     ///< of one microbatch, each tensor once
};

/// Where the program would run; 0 = not known.
struct Machine {
    int cores = 0;
    int64_t memory_bytes = 0;
    std::vector<Card> cards = {};
    bool mpi_moves_card_memory = false;
};

/// What one step's critical path (schedule/critical_path.hpp) is made of, 0 to 1 of the makespan.
struct CriticalShares {
    std::vector<double> stages;  ///< by stage
    double messages = 0;
};

struct Inspection {
    std::string plan_file, model_files, data_text, mesh_text, digest;
    std::vector<std::string> settings;  ///< of --set, for lines to be copied
    int num_ranks = 1, pp = 1, dp = 1, threads = 1;
    int accumulate = 1;  ///< pipeline runs of a step
    Machine machine;

    int num_ops = 0, legal_cuts = 0;
    std::pair<std::string, int> commonest_refusal;  ///< why, and of how many cuts
    int64_t num_parameters = 0, parameter_bytes = 0, buffer_bytes = 0;
    double flops = 0;  ///< forward, one microbatch
    std::vector<std::string> notes;

    int64_t samples = 0;  ///< of a step
    int64_t microbatch_size = 1;
    Schedule schedule;
    ScheduleCosts costs;
    std::string cost_source, cost_unit, split_method;
    double unit_bubble = 0;    ///< 0 to 1, at F = 1, B = 2 and free transfers
    double bubble = 0;         ///< 0 to 1, at the costs
    double makespan = 0;       ///< in the unit of the costs
    double even_makespan = 0;  ///< if all stages cost the same
    CriticalShares critical_path;
    /// Of 1F1B, beside a schedule that divides backward, where costs are measured: its makespan, and what I and W take
    /// together over B.
    std::optional<double> undivided_makespan;
    double halves_over_whole = 1;
    std::optional<Balance> balance;                     ///< how AUTO came to its cuts
    std::vector<std::string> search;                    ///< lines: how AUTO came to its schedule
    std::vector<MicrobatchForecast> more_microbatches;  ///< where the schedule can be made so

    int num_ties = 0;
    bool exact_ties = true;
    bool zero1 = false, recomputes = false;
    std::string recompute_text;  ///< empty without recompute

    std::vector<InspectedModule> modules;
    std::vector<InspectedStage> stages;
    std::vector<InspectedRank> ranks;
    std::vector<CardShare> cards;  ///< of the machine, if all ranks run on it; empty where they compute on the CPU
    std::vector<InspectedHostOp> host_ops;  ///< of a job on cards
    std::string transport = "auto";         ///< mesh.transport
    std::string no_room;                    ///< what has no way from card to card; empty where all has
    std::vector<InspectedEdge> edges;
    std::vector<InspectedLink> links;
    std::vector<InspectedCut> cuts;
    std::vector<InspectedBlock> blocks;
    std::vector<InspectedFlow> flows;

    int num_stages() const { return static_cast<int>(stages.size()); }
    bool share_cards() const { return num_ranks > static_cast<int>(cards.size()); }
    /// Of ranks that compute on cards, as a job with those of this machine would choose.
    bool send_by_nccl() const {
        const UsesLinks links = transport_named(transport).links;
        return num_ranks > 1 && (links == UsesLinks::Yes || (links == UsesLinks::WherePossible && !share_cards()));
    }
};

}  // namespace vpp
