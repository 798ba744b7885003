#pragma once
// Many layouts of one model against one device, inside one job: every combination of ranks, microbatches, schedule,
// chunks, cuts and recompute that a request spans, or as many as it takes to have every pair of values. What the rules
// of a schedule or split method refuse is counted, never hidden.
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/verify_layout.hpp"
#include "engine/verify_request.hpp"

namespace vpp {

/// One combination.
struct LayoutChoice {
    int num_stages = 1;  ///< ranks of the pipeline
    int num_replicas = 1;
    bool zero1 = false;
    int num_microbatches = 1;
    std::string schedule;
    int chunks = 1;
    std::string split;      ///< a split method; with random cuts "random", with stages by hand "MANUAL_EAGER"
    int random_cut = 0;     ///< which of them
    std::string recompute;  ///< as recompute_from_text takes it; empty: the plan's
    /// "1F1B, 2 ranks x 1, M 3, FLOPS"; with replicas "1F1B, 2 ranks x 1, DP 2, ZeRO-1, M 3, FLOPS"
    std::string text() const;
    int num_ranks() const { return num_stages * num_replicas; }
};

/// All combinations, in a fixed order; schedules innermost, so that each gets every cut. With stages by hand the stages
/// of a rank say how many ranks there are, unless these are asked for.
/// Throws Error{CommandLine} for what `recompute` cannot be, and for split methods where the stages are by hand.
std::vector<LayoutChoice> list_layouts(const Plan& plan, const VerifyRequest& request);

/// Few of many combinations.
struct PairwiseLayouts {
    std::vector<LayoutChoice> choices;  ///< those to run; then those that were wanted and are refused
    size_t num_combinations = 0;        ///< of which they were chosen
    size_t num_pairs = 0;               ///< pairs of values that those to run have: all that are allowed
    size_t num_impossible = 0;          ///< pairs that only refused combinations have
};

/// Combinations in which every pair of values occurs (two of: ranks, replicas, ZeRO-1, microbatches, schedule,
/// chunks, split and recompute) that is in any combination which is not refused. The same on every rank.
PairwiseLayouts choose_pairwise(const Plan& plan, const Program& base, const std::vector<LayoutChoice>& choices,
                                uint64_t seed);

/// Cuts drawn among the legal ones of a graph: a pure function of graph, number of stages and key.
/// Throws Error{Plan} when there are fewer legal cuts than needed.
std::vector<int> random_cuts(const Graph& graph, int num_stages, uint64_t key);

/// The plan and program of a choice. `base` has the graph and the microbatch size.
/// Throws Error{Plan} when its rules refuse it.
Layout make_layout(const Plan& plan, const Program& base, const LayoutChoice& choice, uint64_t seed);

/// How a schedule fared.
struct ScheduleTally {
    int equal = 0, different = 0, refused = 0;
};

struct MatrixResult {
    int64_t steps = 0;  ///< of each run
    int num_references = 0;
    ScheduleTally all;
    std::map<std::string, ScheduleTally> by_schedule;
    std::map<std::string, int64_t> by_kind;                   ///< values compared
    std::map<std::string, std::vector<std::string>> refused;  ///< reason -> combinations
    std::vector<std::string> different;                       ///< combinations
    std::vector<std::string> through_host;                    ///< equal ones of VerifyResult::is_through_host
    std::string first_difference;                             ///< of the first of them
    std::string first_cuts;                                   ///< where it was cut: "cut before ops 3, 8"

    bool is_equal() const { return all.different == 0; }
    /// Steps without an update, over all layouts.
    int64_t num_skipped() const { return by_kind.contains(kSkipped) ? by_kind.at(kSkipped) : 0; }
};

/// Called on rank 0 after each combination.
using AfterLayout = std::function<void(const LayoutChoice&, const std::string& outcome)>;

/// Runs all combinations; the result is rank 0's.
/// Requires: every choice needs at most the ranks of the job.
/// Calls:  collective.
/// Throws: Error{Plan} when every combination was refused: nothing was compared then; what a step throws.
MatrixResult verify_matrix(const Plan& plan, const Program& base, const std::vector<LayoutChoice>& choices,
                           LayoutVerifier& verifier, Transport& transport, int64_t steps, uint64_t seed,
                           const AfterLayout& after = {});

}  // namespace vpp
