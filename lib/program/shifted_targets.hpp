#pragma once
// Targets that are shifted twice: the data kinds of tokens shift them by one, and so do models of other libraries that
// take the tokens themselves for labels. Such a training learns the token after the next.
#include <cstdint>
#include <string>

#include "data/fields.hpp"
#include "graph/source.hpp"
#include "plan/plan.hpp"
#include "program/counted_targets.hpp"

namespace vpp {

/// What to say where the loss takes the field "targets" of tokens or text without the first target of a sample, and
/// with the second; else "". The ops that make the loss's targets run for it, on numbers that tell places apart.
std::string shifted_twice_text(const Plan& plan, const Fields& fields, int64_t microbatch_size, const Graph& graph,
                               Source& source);

}  // namespace vpp
