#pragma once
// The mode of each submodule while the model trains: train mode, as behind model.train(), but for those that
// model.eval_modules names, as frozen batch norms and teachers need it.
#include <torch/csrc/jit/api/module.h>

#include <string>
#include <vector>

#include "graph/jit_graph.hpp"
#include "graph/model_files.hpp"

namespace vpp {

/// The outermost submodules that the file has in eval mode beside others in train mode: none where all of a file, the
/// model's or a stage's, is in eval mode.
std::vector<std::string> submodules_in_eval_mode(const torch::jit::Module& root, bool is_joined);

/// Sets the mode of all modules; in training what a glob matches, and all that is in it, is in eval mode.
/// Throws: Error{Plan} at the globs that match no submodule.
void set_module_modes(torch::jit::Module& root, bool training, const std::vector<std::string>& eval_modules,
                      const KeyPosition& where);

/// Adds to jit.notes which of these submodules train in another mode than their file has, and of `eval_modules` those
/// that change nothing. Traces do not look at modes, and are told of by graph/jit_mode_notes.
/// Requires: the graph's attributes are resolved.
void add_module_mode_notes(JitGraph& jit, const std::vector<std::string>& in_eval_mode,
                           const std::vector<std::string>& eval_modules);

}  // namespace vpp
