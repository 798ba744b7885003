#pragma once
// model.init_from: a training, verification or evaluation that begins with the weights of a file instead of those of
// the model file. Once there is a checkpoint to resume from, nobody looks at the key, so that the command that started
// a training also resumes it.
#include <string>
#include <vector>

#include "base/log.hpp"
#include "engine/engine.hpp"
#include "graph/graph.hpp"
#include "stage/weights.hpp"

namespace vpp {

/// Gives an engine that has done no step the weights that model.init_from names; does nothing without the key. Every
/// rank finds all of the model's tensors by name, but reads only its own; rank 0 compares checksums. A buffer that
/// nothing writes may be missing (other tools leave constants out): it stays as the model file has it. So may a
/// parameter that a table of model.init matches: it stays as the seed fills it. What the file has goes before that.
/// What is special goes to the log, if there is one, on rank 0: tensors that are not taken, what was missing, a prefix
/// that names differ by, tensors that were converted.
/// Calls:  collective.
/// Throws: Error{MissingInput}; Error{BadData} for damage, and with all names that are missing or unfit.
void load_initial_weights(Engine& engine, const Plan& plan, const Program& program, const Logger& log = nullptr);

/// The same for the weights of an evaluation.
void load_initial_weights(const Weights& weights, const Plan& plan, const Graph& graph, Transport& transport,
                          const Logger& log);

}  // namespace vpp
