#include "stage/microbatch_form.hpp"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <bit>

#include "device/memory_begin.hpp"
#include "graph/ivalue_tensors.hpp"

namespace vpp {

namespace {

TensorForm form_of(const at::Tensor& tensor) {
    if (tensor.layout() != at::kStrided) return {};
    TensorForm form{tensor.sizes().vec(), tensor.strides().vec(), tensor.scalar_type(), begin_bytes_of(tensor),
                    !tensor.is_cpu()};
    const bool is_number = tensor.dim() == 0 && at::isIntegralType(tensor.scalar_type(), /*includeBool=*/true);
    if (tensor.is_cpu() && is_number) form.host_number = tensor.item<int64_t>();
    return form;
}

/// Which they hold is told by their graph; here another stands for each.
std::map<int, c10::IValue> without_tensors(const std::map<int, c10::IValue>& values) {
    std::map<int, c10::IValue> structures;
    for (const auto& [id, value] : values) {
        structures[id] = map_tensors(value, [](const at::Tensor&) { return at::empty({0}); });
    }
    return structures;
}

std::map<int, TensorForm> forms_of(const std::map<int, at::Tensor>& tensors) {
    std::map<int, TensorForm> forms;
    for (const auto& [id, tensor] : tensors) forms[id] = form_of(tensor);
    return forms;
}

bool is_same_value(const c10::IValue& one, const c10::IValue& other);

bool are_same_values(c10::ArrayRef<c10::IValue> some, c10::ArrayRef<c10::IValue> others) {
    return std::equal(some.begin(), some.end(), others.begin(), others.end(), is_same_value);
}

/// Kernels tell 0 from -0.
bool are_same_bits(double one, double other) {
    return std::bit_cast<uint64_t>(one) == std::bit_cast<uint64_t>(other);
}

c10::IValue parts_of(const c10::IValue& number) {
    const c10::complex<double> value = number.toComplexDouble();
    return c10::ivalue::Tuple::create(value.real(), value.imag());
}

/// In the order in which they are gone through.
c10::IValue entries_of(const c10::IValue& dict) {
    std::vector<c10::IValue> entries;
    for (const auto& entry : dict.toGenericDict()) {
        entries.push_back(entry.key());
        entries.push_back(entry.value());
    }
    return c10::ivalue::Tuple::create(std::move(entries));
}

/// Tensors inside come by themselves; what is no plain value is like no other.
bool is_same_value(const c10::IValue& one, const c10::IValue& other) {
    if (one.tagKind() != other.tagKind()) return false;
    if (one.isTensor() || one.isNone()) return true;
    if (one.isBool()) return one.toBool() == other.toBool();
    if (one.isInt()) return one.toInt() == other.toInt();
    if (one.isDouble()) return are_same_bits(one.toDouble(), other.toDouble());
    if (one.isComplexDouble()) return is_same_value(parts_of(one), parts_of(other));
    if (one.isString()) return one.toStringRef() == other.toStringRef();
    if (one.isDevice()) return one.toDevice() == other.toDevice();
    if (one.isList()) return are_same_values(one.toList().vec(), other.toList().vec());
    if (one.isTuple()) return are_same_values(one.toTupleRef().elements(), other.toTupleRef().elements());
    if (one.isGenericDict()) return is_same_value(entries_of(one), entries_of(other));
    return false;
}

bool are_same(const std::map<int, c10::IValue>& some, const std::map<int, c10::IValue>& others) {
    return std::equal(some.begin(), some.end(), others.begin(), others.end(), [](const auto& one, const auto& other) {
        return one.first == other.first && is_same_value(one.second, other.second);
    });
}

}  // namespace

void MicrobatchForm::note_inputs(const PassInputs& given) {
    inputs = forms_of(given.tensors);
    values = without_tensors(given.values);
    without_gradient = given.without_gradient;
}

bool MicrobatchForm::has_inputs_of(const MicrobatchForm& other) const {
    return inputs == other.inputs && are_same(values, other.values) && without_gradient == other.without_gradient &&
           is_recomputed == other.is_recomputed && is_evaluated == other.is_evaluated;
}

bool MicrobatchForm::operator==(const MicrobatchForm& other) const {
    return has_inputs_of(other) && is_split == other.is_split && arrived == other.arrived &&
           tied_arrived == other.tied_arrived;
}

std::map<int, std::optional<TensorForm>> gradient_forms_of(const std::map<int, at::Tensor>& gradients) {
    std::map<int, std::optional<TensorForm>> forms;
    for (const auto& [id, gradient] : gradients) {
        forms[id] = gradient.defined() ? std::optional(form_of(gradient)) : std::nullopt;
    }
    return forms;
}

}  // namespace vpp
