#pragma once
// What decides which ops a microbatch runs, and which kernels they choose: its numbers left out.
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "stage/pass.hpp"

namespace vpp {

/// All of a tensor that kernels can be chosen by, its numbers left out.
struct TensorForm {
    std::vector<int64_t> sizes, strides;
    at::ScalarType dtype = at::kFloat;
    int64_t begin_bytes = 0;                  ///< device/memory_begin.hpp
    bool is_plain = false;                    ///< of a card, and not sparse
    std::optional<int64_t> host_number = {};  ///< of the host, as a trace has sizes: known when ops are recorded

    bool operator==(const TensorForm&) const = default;
};

/// Of what comes to a segment for one microbatch.
struct MicrobatchForm {
    std::map<int, TensorForm> inputs;
    std::map<int, c10::IValue> values;  ///< without the tensors inside
    std::set<int> without_gradient;
    bool is_recomputed = false;  ///< between forward and backward it has its inputs alone
    bool is_split = false;       ///< I and W, not B
    bool is_evaluated = false;   ///< forward alone
    std::map<int, std::optional<TensorForm>> arrived, tied_arrived;

    void note_inputs(const PassInputs& given);
    bool has_inputs_of(const MicrobatchForm& other) const;
    bool operator==(const MicrobatchForm& other) const;
};

/// Of gradients; of one that is undefined none.
std::map<int, std::optional<TensorForm>> gradient_forms_of(const std::map<int, at::Tensor>& gradients);

}  // namespace vpp
