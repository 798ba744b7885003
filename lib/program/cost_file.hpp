#pragma once
// pipeline.cost_file: measured times of the model's submodules, as JSON.
//
//   { "unit": "ms", "transfer": 0.05, "transfer_per_mib": 0.1,
//     "modules": { "blocks.0": { "F": 1.5, "B": 3.1 }, "head": { "F": 4.0, "I": 4.1, "W": 3.9 } } }
//
// Times are those of one microbatch, in one unit of any name. A submodule needs F, and B or both I and W; B is I + W
// where it is not named, I and W share B as their FLOPs do where they are not. `transfer` is a hop between ranks,
// `transfer_per_mib` what each MiB adds; both are 0 by default.
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

struct CostFile {
    std::string unit;
    double transfer = 0;
    double transfer_per_mib = 0;
    std::vector<ModuleTimes> modules;  ///< by name
    std::string digest;                ///< of the file's text
};

/// Throws: Error{BadData} naming what is wrong in the text; `name` is the file.
CostFile parse_cost_file(const std::string& text, const std::string& name);

/// Reads the file of a plan. Throws: Error{MissingInput, BadData}.
CostFile read_cost_file(const Plan& plan);

/// The costs of the ops: an op belongs to the innermost submodule that is listed, whose times its ops share in the
/// proportion of their estimates. Ops outside all of them cost their estimate at the rate of those inside.
/// Throws: Error{Plan} at pipeline.cost_file for a submodule that the model has not, or whose ops are all in others.
CostModel measured_costs(const CostFile& file, const Graph& graph, const CostModel& estimate, const Plan& plan);

}  // namespace vpp
