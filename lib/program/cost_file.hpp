#pragma once
// pipeline.cost_file: measured times of the model's submodules, as JSON.
//
//   { "unit": "ms", "transfer": 0.05, "transfer_per_mib": 0.1,
//     "modules": { "blocks.0": { "F": 1.5, "B": 3.1 }, "head": { "F": 4.0, "I": 4.1, "W": 3.9 } } }
//
// Times are those of one microbatch, in one unit of any name. A submodule needs F, and B or both I and W; B is I + W
// where it is not named, I and W share B as their FLOPs do where they are not. `transfer` is a hop between ranks,
// `transfer_per_mib` what each MiB adds; both are 0 by default.
//
// What `vpp profile` measured (engine/cost_profile.hpp) has "parts" instead of "modules": runs of ops that no legal cut
// divides, all of them in order, and what they were measured with.
//
//   { "unit": "ms", "transfer": 0.05, "transfer_per_mib": 0.1,
//     "model": "<digest>", "microbatch_size": 4, "measured": "LibTorch 2.11.0, AVX512, 1 thread",
//     "parts": [ { "ops": [0, 3], "module": "embedding", "F": 0.2, "B": 0.3, "I": 0, "W": 0.3, "bytes": 4096 } ] }
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "program/cost_model.hpp"

namespace vpp {

/// One line of "modules".
struct ModuleTimes {
    std::string module;  ///< FQN; "" = the whole model
    double forward = 0;
    std::optional<double> backward, input_gradient, weight_gradient;
};

/// One line of "parts".
struct PartTimes {
    OpRange ops;
    std::string module;  ///< of its first op that has one; for people
    OpCosts times;
    int64_t kept_bytes = 0;  ///< held from its F to its backward, one microbatch
};

struct CostFile {
    std::string name;  ///< of the file, printable
    std::string unit;
    double transfer = 0;
    double transfer_per_mib = 0;
    std::vector<ModuleTimes> modules;  ///< by name; or
    std::vector<PartTimes> parts;      ///< in the order of the ops, from the first to the last
    std::string model;                 ///< with parts: the digest of the graph
    int64_t microbatch_size = 0;       ///< with parts: samples
    std::string measured;              ///< with parts: what a numeric environment says
    std::string digest;                ///< of the file's text
};

/// The file that measured costs of a run are kept in, in its folder.
inline constexpr const char* kRunCosts = "costs.json";

/// Whether what a plan makes of its model depends on what parts of it cost: split or schedule is AUTO.
bool goes_by_costs(const Plan& plan);

/// The cost file that a plan goes by: its own, else that of its run folder where it goes by costs; empty: none.
std::string cost_file_of(const Plan& plan);

/// Of what was measured: parts. parse_cost_file reads it back.
std::string to_json_text(const CostFile& file);

/// Throws: Error{BadData} naming what is wrong in the text; `name` is the file.
CostFile parse_cost_file(const std::string& text, const std::string& name);

/// Throws: Error{MissingInput, BadData}.
CostFile read_cost_file(const std::string& path);

/// The costs of the ops: an op belongs to the innermost submodule that is listed, whose times its ops share in the
/// proportion of their estimates. Ops outside all of them cost their estimate at the rate of those inside. With parts:
/// the ops of each share its times in that proportion.
/// Throws: Error{Plan} at pipeline.cost_file for a submodule that the model has not, or whose ops are all in others,
/// and
///         for parts of another model.
CostModel measured_costs(const CostFile& file, const Graph& graph, const CostModel& estimate, const Plan& plan);

}  // namespace vpp
