#pragma once
// The tensors inside a value: walked in one fixed order, and put back. Tuples, lists and dicts to any depth; undefined
// tensors count as no tensor.
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace vpp {

/// The tensors of a value in the order of the walk; the same object may come more than once.
std::vector<at::Tensor> tensors_in(const c10::IValue& value);

/// About what a message needs for the numbers and words in it.
int64_t plain_bytes_of(const c10::IValue& value);

/// A copy of the value in which every value that holds no others is replaced by `replace(value)`, keys of dicts left
/// out; containers are made anew with their element types.
using LeafMap = std::function<c10::IValue(const c10::IValue&)>;
c10::IValue map_leaves(const c10::IValue& value, const LeafMap& replace);

/// A copy of the value in which every tensor is replaced by `replace(tensor)`; containers are made anew with their
/// element types.
c10::IValue map_tensors(const c10::IValue& value, const std::function<at::Tensor(const at::Tensor&)>& replace);

}  // namespace vpp
