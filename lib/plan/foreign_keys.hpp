#pragma once
// Names that users of other trainers type: Megatron-LM, DeepSpeed, torchtitan, Lightning, Transformers, veScale.
#include <string>
#include <string_view>
#include <vector>

namespace vpp {

/// Names of one thing, and what a plan says in their place. A name here is the last part of no key.
struct ForeignKeys {
    std::string answer;
    std::vector<std::string_view> names;  ///< in lower case, with '_'
};

const std::vector<ForeignKeys>& foreign_keys();

/// What to write instead of that name, in either case of letters, also as a flag ("--micro-batch-size"); empty for a
/// name that no other trainer has.
std::string foreign_key_answer(std::string_view last_part);

}  // namespace vpp
