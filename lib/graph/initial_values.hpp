#pragma once
// [[model.init]]: parameters that are filled from the seed instead of being read, each by the stage that owns it. A
// parameter whose strides are all 0 stands for one without data in the file, so that a model of any size can be
// exported and looked at.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "plan/plan.hpp"

namespace vpp {

struct InitialValues {
    std::vector<InitRule> rules;  ///< the first that matches fills the parameter
    uint64_t seed = 0;            ///< train.seed
};

/// Whether a parameter brings its values along: not when it has several elements and every stride is 0. A buffer always
/// does, as nothing fills it.
bool has_data(const at::Tensor& parameter, bool is_buffer);

/// The rule for a parameter or buffer of these names; nullptr when none matches. Buffers are never filled.
const InitRule* rule_for(const std::vector<InitRule>& rules, const std::string& name,
                         const std::vector<std::string>& aliases);

/// A contiguous tensor like `parameter`, filled as torch.nn.init does it on the CPU with a generator that is seeded
/// with name_key(seed, name) (base/RANDOM.md).
at::Tensor filled(const at::Tensor& parameter, const InitRule& rule, uint64_t seed, const std::string& name);

/// Rules that match no parameter. Requires: the training graph of that plan.
std::vector<Problem> check_init_rules(const Plan& plan, const Graph& graph);

/// Throws: Error{Plan} at model.init with the names of those that have no values, if there are any.
void refuse_without_values(const Plan& plan, const std::vector<std::string>& names);

/// Whether every parameter gets its values from somewhere: for a training, not to look at a model.
/// Throws: Error{Plan} at model.init with the names of those without.
void check_have_values(const Plan& plan, const Graph& graph);

}  // namespace vpp
