#include "optim/norm.hpp"

#include <ATen/native/ForeachUtils.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>

#include "base/error.hpp"
#include "device/memory_begin.hpp"

namespace vpp {

namespace {

constexpr double kNormOrder = 2;
constexpr double kSmall = 1e-6;           // what Python adds to the total
constexpr int64_t kWidestReadBytes = 64;  // by an instruction of a CPU; cards read 32 at most

/// Where a gradient lies depends on the layout: replicas have sums in memory of their own.
at::Tensor aligned(const at::Tensor& gradient) {
    return begin_bytes_of(gradient) % kWidestReadBytes == 0 ? gradient : gradient.clone();
}

/// What a card's kernel for many norms takes. With one that has gaps in its list, all of them would go another way.
bool is_for_many(const at::Tensor& gradient) {
    return gradient.is_non_overlapping_and_dense() && gradient.numel() > 0;
}

std::vector<at::Tensor> defined_of(const std::vector<at::Tensor>& tensors) {
    std::vector<at::Tensor> defined;
    std::copy_if(tensors.begin(), tensors.end(), std::back_inserter(defined),
                 [](const auto& t) { return t.defined(); });
    return defined;
}

/// Those of one dtype behind each other. Python takes the groups as LibTorch's hash table has them, so that is asked.
std::vector<at::Tensor> by_dtype(const std::vector<at::Tensor>& norms, at::Device device) {
    const at::Device first_one(device.type(), device.is_cpu() ? at::DeviceIndex(-1) : at::DeviceIndex(0));
    at::native::FlatMap groups;
    for (const at::Tensor& norm : norms) {
        auto& lists = groups[{first_one, norm.scalar_type()}].first;
        lists.resize(1);
        lists[0].emplace_back(norm);
    }
    std::vector<at::Tensor> ordered;
    for (const auto& [kind, group] : groups) {
        for (const std::optional<at::Tensor>& norm : group.first[0]) ordered.push_back(*norm);
    }
    return ordered;
}

}  // namespace

std::vector<at::Tensor> parameter_norms(const std::vector<at::Tensor>& gradients) {
    const c10::NoGradGuard no_grad;
    std::vector<at::Tensor> norms(gradients.size());
    std::map<at::ScalarType, std::vector<size_t>> by_dtype;
    for (size_t i = 0; i < gradients.size(); ++i) {
        if (!gradients[i].defined()) continue;
        if (is_for_many(gradients[i])) {
            by_dtype[gradients[i].scalar_type()].push_back(i);
        } else {
            norms[i] = at::linalg_vector_norm(aligned(gradients[i]), kNormOrder);
        }
    }
    for (const auto& [dtype, places] : by_dtype) {
        std::vector<at::Tensor> list;
        for (size_t place : places) list.push_back(aligned(gradients[place]));
        const std::vector<at::Tensor> of_list = at::_foreach_norm(list, kNormOrder);
        for (size_t i = 0; i < places.size(); ++i) norms[places[i]] = of_list[i];
    }
    return norms;
}

at::Tensor total_norm(const std::vector<at::Tensor>& norms, at::Device device) {
    const c10::NoGradGuard no_grad;
    const std::vector<at::Tensor> defined = defined_of(norms);
    if (defined.empty()) return at::zeros({});
    return at::linalg_vector_norm(at::stack(by_dtype(defined, device)).to(device), kNormOrder);
}

at::Tensor clip_coefficient(const at::Tensor& total, double max_norm) {
    check(max_norm > 0, "gradients are clipped to a norm above 0");
    const c10::NoGradGuard no_grad;
    const at::Tensor coefficient = total.add(kSmall).reciprocal().mul(max_norm);
    return at::clamp(coefficient, std::nullopt, 1.0);
}

void scale_gradients(const std::vector<at::Tensor>& gradients, const at::Tensor& coefficient) {
    const c10::NoGradGuard no_grad;
    const std::vector<at::Tensor> defined = defined_of(gradients);
    if (defined.empty()) return;
    const at::Tensor factor = coefficient.to(defined.front().device());
    std::vector<at::Tensor> list;
    for (const at::Tensor& gradient : defined) {
        // The kernel for many reads the factor in their dtype.
        if (gradient.scalar_type() == factor.scalar_type()) {
            list.push_back(gradient);
        } else {
            gradient.mul_(factor);
        }
    }
    if (!list.empty()) at::_foreach_mul_(list, factor);
}

}  // namespace vpp
