#include "engine/tensor_difference.hpp"

#include <algorithm>
#include <cstring>

#include "base/dtype.hpp"
#include "graph/torch_dtype.hpp"

namespace vpp {

namespace {

uint64_t bits_at(const std::byte* data, int64_t index, size_t size_bytes) {
    uint64_t bits = 0;
    std::memcpy(&bits, data + static_cast<size_t>(index) * size_bytes, size_bytes);
    return bits;
}

/// A number that ascends with the value, the two zeros being one.
int64_t ordered(uint64_t bits, at::ScalarType dtype) {
    const int width = static_cast<int>(8 * size_of(from_torch(dtype)));
    const uint64_t sign = uint64_t{1} << (width - 1);
    if (at::isFloatingType(dtype)) {
        const auto magnitude = static_cast<int64_t>(bits & (sign - 1));
        return bits & sign ? -magnitude : magnitude;
    }
    const bool negative = at::isSignedType(dtype) && (bits & sign) != 0;
    return static_cast<int64_t>(negative ? bits | ~(sign | (sign - 1)) : bits);
}

std::string value_text(const at::Tensor& flat, int64_t index) {
    char text[96];
    if (at::isFloatingType(flat.scalar_type())) {
        const auto value = flat[index].item<double>();
        std::snprintf(text, sizeof text, "%.9g (%a)", value, value);
    } else {
        std::snprintf(text, sizeof text, "%lld", static_cast<long long>(flat[index].item<int64_t>()));
    }
    return text;
}

std::vector<int64_t> unravel(int64_t position, at::IntArrayRef shape) {
    std::vector<int64_t> index(shape.size());
    for (size_t dim = shape.size(); dim-- > 0;) {
        index[dim] = position % shape[dim];
        position /= shape[dim];
    }
    return index;
}

std::string form_text(const at::Tensor& tensor) {
    return std::string(name_of(from_torch(tensor.scalar_type()))) + shape_text(tensor.sizes().vec());
}

std::string ulps_text(uint64_t ulps) {
    return std::to_string(ulps) + (ulps == 1 ? " ulp" : " ulps");
}

}  // namespace

uint64_t ulps_between(uint64_t a, uint64_t b, at::ScalarType dtype) {
    const int64_t x = ordered(a, dtype), y = ordered(b, dtype);
    return x > y ? static_cast<uint64_t>(x) - static_cast<uint64_t>(y)
                 : static_cast<uint64_t>(y) - static_cast<uint64_t>(x);
}

std::string TensorDifference::text() const {
    if (is_other_form) return "reference " + reference + ", pipeline " + pipeline;
    return (index.empty() ? std::string() : "element " + shape_text(index) + ": ") + "reference " + reference +
           ", pipeline " + pipeline + ", " + ulps_text(ulps) +
           (num_elements == 1 ? std::string()
                              : "; " + std::to_string(num_different) + " of " + std::to_string(num_elements) +
                                    " elements differ, by up to " + ulps_text(most_ulps));
}

std::optional<TensorDifference> find_difference(const at::Tensor& reference, const at::Tensor& pipeline) {
    if (reference.scalar_type() != pipeline.scalar_type() || reference.sizes() != pipeline.sizes()) {
        TensorDifference difference;
        difference.is_other_form = true;
        difference.reference = form_text(reference);
        difference.pipeline = form_text(pipeline);
        return difference;
    }
    const at::Tensor a = reference.contiguous().view({-1}), b = pipeline.contiguous().view({-1});
    const auto* a_data = static_cast<const std::byte*>(a.const_data_ptr());
    const auto* b_data = static_cast<const std::byte*>(b.const_data_ptr());
    const auto size_bytes = static_cast<size_t>(a.itemsize());
    TensorDifference difference;
    difference.num_elements = a.numel();
    for (int64_t i = 0; i < a.numel(); ++i) {
        const uint64_t x = bits_at(a_data, i, size_bytes), y = bits_at(b_data, i, size_bytes);
        if (x == y) continue;
        const uint64_t ulps = ulps_between(x, y, a.scalar_type());
        difference.most_ulps = std::max(difference.most_ulps, ulps);
        if (difference.num_different++ > 0) continue;
        difference.ulps = ulps;
        difference.index = unravel(i, reference.sizes());
        difference.reference = value_text(a, i);
        difference.pipeline = value_text(b, i);
    }
    if (difference.num_different == 0) return std::nullopt;
    return difference;
}

}  // namespace vpp
