#pragma once
// The kinds of data, one opener each, as data/registry.cpp lists them. A new kind is a file of its own, a declaration
// here and a row there. Every opener checks the plan's keys that only it understands, then its files.
// Returns null when the plan names no validation part. Throws Error{MissingInput, BadData, Plan}.
#include <memory>

#include "data/dataset.hpp"

namespace vpp::detail {

/// nanoGPT's raw tokens, llm.c's files with a header, Megatron-LM's files with an index beside them: fields tokens and
/// targets, int64, [sequence_length].
std::unique_ptr<Dataset> open_tokens(const Plan& plan, Subset subset);
/// The bytes of any files as tokens 0..255: the same fields.
std::unique_ptr<Dataset> open_text(const Plan& plan, Subset subset);
/// One .npy file a field; the first dim counts samples.
std::unique_ptr<Dataset> open_arrays(const Plan& plan, Subset subset);
/// MNIST's files, one a field: pictures as float32 from 0 to 1, [1, height, width]; labels as int64.
std::unique_ptr<Dataset> open_idx(const Plan& plan, Subset subset);
/// CIFAR-10's binary version: fields image, float32 from 0 to 1, [3, 32, 32], and label, int64.
std::unique_ptr<Dataset> open_cifar10(const Plan& plan, Subset subset);
/// Keyed values from no file. It has no validation part.
std::unique_ptr<Dataset> open_synthetic(const Plan& plan, Subset subset);

}  // namespace vpp::detail
