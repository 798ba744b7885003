#pragma once
// model.freeze: parameters that are not trained. They lose requires_grad when the model is loaded, as they would in
// Python, so that no gradient is computed for them, sent for them or kept.
#include <string>
#include <vector>

#include "graph/jit_graph.hpp"
#include "graph/model_files.hpp"

namespace vpp {

/// Freezes the parameters of which a glob matches a name, but for those that a later "!GLOB" matches; one of the names
/// of a tied parameter is enough. None is trained that the file does not train.
/// Throws: Error{Plan} at the globs that match no parameter, or when nothing is left to train.
void freeze_parameters(JitGraph& jit, const std::vector<std::string>& globs, const KeyPosition& where);

}  // namespace vpp
