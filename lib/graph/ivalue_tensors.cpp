#include "graph/ivalue_tensors.hpp"

#include <ATen/core/Dict.h>
#include <ATen/core/List.h>
#include <c10/util/Exception.h>

namespace vpp {

namespace {

c10::IValue map_list(const c10::List<c10::IValue>& list, const LeafMap& replace) {
    c10::List<c10::IValue> copy(list.elementType());
    copy.reserve(list.size());
    for (const c10::IValue& element : list) copy.push_back(map_leaves(element, replace));
    return copy;
}

/// Null for a tuple without names, whose type LibTorch makes of its elements': a tensor that is not there has none.
c10::TupleTypePtr named_type(const c10::ivalue::Tuple& tuple) {
    try {
        const auto type = tuple.type<c10::TupleType>();
        return type->schema() ? type : nullptr;
    } catch (const c10::Error&) {
        return nullptr;
    }
}

c10::IValue map_tuple(const c10::ivalue::Tuple& tuple, const LeafMap& replace) {
    std::vector<c10::IValue> elements;
    for (const c10::IValue& element : tuple.elements()) elements.push_back(map_leaves(element, replace));
    const c10::TupleTypePtr type = named_type(tuple);
    return type ? c10::ivalue::Tuple::createNamed(std::move(elements), type)
                : c10::ivalue::Tuple::create(std::move(elements));
}

c10::IValue map_dict(const c10::Dict<c10::IValue, c10::IValue>& dict, const LeafMap& replace) {
    c10::Dict<c10::IValue, c10::IValue> copy(dict.keyType(), dict.valueType());
    for (const auto& entry : dict) copy.insert(entry.key(), map_leaves(entry.value(), replace));
    return copy;
}

}  // namespace

c10::IValue map_leaves(const c10::IValue& value, const LeafMap& replace) {
    if (value.isList()) return map_list(value.toList(), replace);
    if (value.isTuple()) return map_tuple(*value.toTuple(), replace);
    if (value.isGenericDict()) return map_dict(value.toGenericDict(), replace);
    return replace(value);
}

c10::IValue map_tensors(const c10::IValue& value, const std::function<at::Tensor(const at::Tensor&)>& replace) {
    return map_leaves(value, [&](const c10::IValue& leaf) {
        return leaf.isTensor() && leaf.toTensor().defined() ? c10::IValue(replace(leaf.toTensor())) : leaf;
    });
}

int64_t plain_bytes_of(const c10::IValue& value) {
    constexpr int64_t kOfNumber = 16, kOfContainer = 64;
    if (value.isGenericDict()) {
        int64_t bytes = kOfContainer;
        for (const auto& entry : value.toGenericDict()) {
            bytes += plain_bytes_of(entry.key()) + plain_bytes_of(entry.value());
        }
        return bytes;
    }
    int64_t bytes = kOfNumber;
    if (value.isList()) {
        for (const c10::IValue& element : value.toList()) bytes += plain_bytes_of(element);
    } else if (value.isTuple()) {
        for (const c10::IValue& element : value.toTuple()->elements()) bytes += plain_bytes_of(element);
    } else if (value.isString()) {
        bytes += static_cast<int64_t>(value.toStringRef().size());
    }
    return bytes;
}

std::vector<at::Tensor> tensors_in(const c10::IValue& value) {
    std::vector<at::Tensor> found;
    if (value.isTensor()) {
        if (value.toTensor().defined()) found.push_back(value.toTensor());
        return found;
    }
    map_tensors(value, [&](const at::Tensor& tensor) {
        found.push_back(tensor);
        return tensor;
    });
    return found;
}

}  // namespace vpp
