#pragma once
// Tells LibTorch's alias analysis what lists do. It takes everything that goes into a list or comes out of one for one
// memory, so one write to a part of a chunk would be a write to all that was ever listed.
#include <torch/csrc/jit/ir/ir.h>

#include <unordered_map>

namespace vpp {

/// What stands for a value in a copy of its graph.
using ValueTwins = std::unordered_map<const torch::jit::Value*, torch::jit::Value*>;

/// Changes a copy that is analysed only, never run:
///   a list that ops read (aten::index, aten::rnn_tanh, ...) shares memory with what it was made of and no more;
///   a list of views (aten::chunk, aten::unbind, ...) and what is taken out of it share memory with what was viewed;
///   of views of each element of a list (aten::broadcast_tensors, aten::meshgrid) each shares memory with its own.
/// Lists that are used in other ways stay as they are.
/// Requires: twins knows every value of the graph; those whose twin changes are put right.
void tell_lists(torch::jit::Graph& copy, ValueTwins& twins);

}  // namespace vpp
