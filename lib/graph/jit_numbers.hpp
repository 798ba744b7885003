#pragma once
// Numbers of the model's Python code, as tracing writes them down: constant tensors without dimensions, of the type
// that Python's numbers have. PyTorch knows such a tensor for a number while it traces; in the file that is lost.
#include <ATen/core/Tensor.h>
#include <torch/csrc/jit/ir/ir.h>

namespace vpp {

bool is_python_number(const at::Tensor& constant);

/// Whether the op calculates with that input as with a number, where it is one: x * 0.5, 1 - x.
bool is_operand(const torch::jit::Node* op, size_t input);

/// Makes them numbers again for the ops that calculate with them, so that a loss of float32 times 0.01 is one of
/// float32 and not of float64. Numbers beside sizes of tensors stay as they are: what is calculated of sizes alone is a
/// tensor, and the number is not to round it.
void restore_numbers(torch::jit::Graph& graph);

}  // namespace vpp
