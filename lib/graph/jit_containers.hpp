#pragma once
// What ops do with lists and dicts: for the passes that make values of them.
#include <torch/csrc/jit/ir/ir.h>

#include <optional>
#include <vector>

namespace vpp {

bool is_list(const torch::jit::Value* value);
bool is_container(const torch::jit::Value* value);  ///< a list or dict

/// Whether the op writes its input of this index, a tensor or a container.
bool writes_input(const torch::jit::Node* node, size_t input);

/// Whether the op changes which elements the container has that is its input of this index.
bool changes(const torch::jit::Node* node, size_t input);

/// Whether some op does so under the container's own name.
bool is_changed(const torch::jit::Value* container);

/// Whether the op keeps nothing of the container, its input of this index, but its elements.
bool only_reads(const torch::jit::Node* node, size_t input);

/// The place of an element of a list with so many, by an index that is known.
std::optional<size_t> place_in_list(const torch::jit::Value* index, size_t size);

/// Makes a list of the elements before the node, of the type that `like` has.
torch::jit::Value* make_list(torch::jit::Node* before, const std::vector<torch::jit::Value*>& elements,
                             const torch::jit::Value* like);

/// Answers what is asked of lists that stay as they were written down: an element, all of them, the length; a part of
/// one becomes a list that is written down. With `others_change` something changes lists by names that are not known.
/// Gives whether something was answered.
bool fold_list_reads(torch::jit::Block* block, bool others_change);

/// Elements that a branch sets, `if wide: sizes[0] = 0`, become what the branch gives and are set behind it, where the
/// code goes straight on. Only for lists that are made of elements that are written down, whose size stays, and which
/// nothing holds; not what a loop sets.
void lift_settings(torch::jit::Block* block);

}  // namespace vpp
