#pragma once
// Names that users of other trainers type: Megatron-LM, DeepSpeed, torchtitan, Lightning, Transformers, veScale.
#include <string>
#include <string_view>
#include <vector>

namespace vpp {

/// Names of one thing, and what a plan says in their place. A name here is the last part of no key, or a full name
/// ("optimizer.name") that no key has.
struct ForeignKeys {
    std::string answer;
    std::vector<std::string_view> names;  ///< in lower case, with '_'
};

const std::vector<ForeignKeys>& foreign_keys();

/// What to write instead of that name, in either case of letters, also as a flag ("--micro-batch-size"); empty for a
/// name that no other trainer has. Full names are known in their section only.
std::string foreign_key_answer(std::string_view last_part, std::string_view section = "");

/// The word of a plan for an element type in another trainer's words: "bf16" for "bfloat16"; empty for others.
std::string foreign_precision(std::string_view word);

}  // namespace vpp
