#pragma once
// Names of ops in graphs that run: an error of LibTorch's interpreter has the place of the node that failed, which here
// says what the op is to the user.
#include <string>
#include <string_view>

#include "graph/jit_graph.hpp"

namespace vpp {

/// Has errors of `running`, a clone of `op`, and of the nodes inside it tell op_text of what failed.
void name_op(const JitGraph& jit, const torch::jit::Node* op, torch::jit::Node* running);

/// op_text of the op that failed; empty where the error's text has none.
std::string failed_op(std::string_view error);

}  // namespace vpp
