#pragma once
// What the code inside a model file may call, found in its text before LibTorch sees the file: loading alone can run
// code (set-state methods, default arguments). Torch-free.
//
// Allowed are the operators of the namespaces aten and prim, but for those that act outside of the model: files,
// printing, other processes. Refused are all other namespaces (libraries that vpp does not know, quantized modules),
// custom classes and methods that run while loading. A list of every harmless operator by name would hold some 2,500
// names and age with each LibTorch; instead the test of this file asks LibTorch's registry for every operator that
// takes text or returns nothing, as anything with an effect must, and fails until each has been judged.
// It holds against the known ways out of a model, not against mistakes in LibTorch's own kernels.
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/archive.hpp"

namespace vpp {

/// An operator that a model file may not call without being trusted.
struct RefusedOperator {
    std::string_view name;  ///< without the namespace: "from_file"
    std::string_view does;  ///< "reads and writes files"
};
std::span<const RefusedOperator> refused_operators();

/// A place in the code that needs trust.
struct CodeFinding {
    int line = 0;      ///< from 1
    std::string what;  ///< "calls from_file, which reads and writes files"
};

/// The first such place in one record of code. Text that torch.jit.save would not write in that way (a string in triple
/// quotes, an alias of the namespace "ops", getattr of anything but a plain name) is one too, so that a name cannot be
/// hidden.
std::optional<CodeFinding> find_untrusted(std::string_view code);

/// Throws Error{Refused} naming file, record, line, operator and the remedy, unless the file's SHA-256 is among
/// `trusted`.
void check_operators(const Archive& archive, const std::vector<std::string>& trusted);

}  // namespace vpp
