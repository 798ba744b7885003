#pragma once
// How many names the attributes of a model have. A submodule that stands in two places has two, and what is in it two
// as well: shared submodules inside of shared ones double them each time, so a file of some kilobytes can have more
// names than there is time to go through.
#include <torch/csrc/jit/api/module.h>

#include <string>

namespace vpp {

/// Throws Error{BadData}, beginning with `source`, where the names beside the first of each attribute are more than
/// 100,000 (a layer that is used a hundred times has some 20,000), or modules are nested deeper than 1,000, as one that
/// is inside of itself is.
void check_module_names(const torch::jit::Module& model, const std::string& source);

}  // namespace vpp
