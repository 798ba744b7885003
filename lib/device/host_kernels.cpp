#include "device/host_kernels.hpp"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/grid_sampling.hpp"

namespace vpp {

namespace {

using torch::jit::Stack;
using Arguments = c10::ArrayRef<c10::IValue>;

bool always(Arguments /*arguments*/) {
    return true;
}

bool of_floating_point(Arguments arguments) {
    return arguments[0].toTensor().is_floating_point();
}

bool has_weights(Arguments arguments) {
    return arguments[1].isTensor();
}

bool is_maximum(Arguments arguments) {
    constexpr int64_t kMaximum = 2;  // as LibTorch numbers the modes of bags
    return arguments[7].toInt() == kMaximum;
}

/// Scans of one line are CUB's, which joins its blocks in the order in which they come; of several lines not.
bool is_scan_of_one_line(Arguments arguments) {
    const at::Tensor& input = arguments[0].toTensor();
    return input.dim() > 0 && input.numel() == input.size(arguments[1].toInt());
}

/// Sums by index have an exact form, products do not.
bool is_product(Arguments arguments) {
    const std::string_view reduction = arguments[4].toStringView();
    return reduction == "prod" || reduction == "multiply";
}

bool is_cubic(Arguments arguments) {
    return arguments[3].toInt() == static_cast<int64_t>(GridInterpolation::Cubic);
}

struct HostOp {
    const char* name;
    const char* overload = "";
    bool (*is_inexact)(Arguments) = always;  ///< on a card, with these arguments
};

/// The pass forward of ctc_loss is here too: that backward reads what it left.
constexpr HostOp kHostOps[] = {
    {"_ctc_loss"},
    {"_ctc_loss", "Tensor"},
    {"_ctc_loss_backward"},
    {"_ctc_loss_backward", "Tensor"},
    {"_embedding_bag_dense_backward", "", is_maximum},
    {"_upsample_bicubic2d_aa_backward"},
    {"_upsample_bilinear2d_aa_backward"},
    {"_logcumsumexp", "", is_scan_of_one_line},
    {"_logcumsumexp", "out", is_scan_of_one_line},
    {"bincount", "", has_weights},
    {"cumprod", "", is_scan_of_one_line},
    {"cumprod_", "", is_scan_of_one_line},
    {"cumprod", "out", is_scan_of_one_line},
    {"grid_sampler_2d_backward", "", is_cubic},
    {"histc", "", of_floating_point},
    {"histc", "out", of_floating_point},
    {"index_reduce"},
    {"index_reduce_"},
    {"index_reduce", "out"},
    {"median", "dim_values"},
    {"nanmedian", "dim_values"},
    {"scatter", "reduce", is_product},
    {"scatter_", "reduce", is_product},
    {"scatter", "reduce_out", is_product},
    {"scatter_reduce", "two", is_product},
    {"scatter_reduce_", "two", is_product},
    {"scatter_reduce", "two_out", is_product},
};

class HostKernel final : public c10::OperatorKernel {
  public:
    HostKernel(HostOp op, c10::SafeKernelFunction of_card) : op_(op), of_card_(std::move(of_card)) {}

    void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
        if (op_.is_inexact(torch::jit::last(*stack, op.schema().arguments().size()))) return run_on_host(op, *stack);
        of_card_.callBoxed(op, keys, stack);
    }

  private:
    HostOp op_;
    c10::SafeKernelFunction of_card_;
};

}  // namespace

void run_on_host(const c10::OperatorHandle& op, Stack& stack) {
    std::vector<std::pair<at::Tensor, at::Tensor>> written;  // each with its copy
    const std::vector<c10::Argument>& arguments = op.schema().arguments();
    const size_t first = stack.size() - arguments.size();
    at::Device device = at::kCPU;
    for (size_t i = 0; i < arguments.size(); ++i) {
        c10::IValue& value = stack[first + i];
        if (!value.isTensor() || !value.toTensor().defined()) continue;
        const at::Tensor given = value.toTensor();
        if (device.is_cpu()) device = given.device();
        value = given.to(at::kCPU);
        const c10::AliasInfo* alias = arguments[i].alias_info();
        if (alias != nullptr && alias->isWrite()) written.emplace_back(given, value.toTensor());
    }
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
    for (const auto& [given, copy] : written) given.resize_(copy.sizes()).copy_(copy);
    const auto back = [&](const at::Tensor& result) {
        for (const auto& [given, copy] : written) {
            if (copy.is_same(result)) return given;
        }
        return result.to(device);
    };
    for (size_t i = first; i < stack.size(); ++i) {
        if (stack[i].isTensor() && stack[i].toTensor().defined()) stack[i] = back(stack[i].toTensor());
    }
}

void add_host_kernels(torch::Library& library) {
    for (const HostOp& op : kHostOps) {
        const c10::OperatorHandle handle =
            c10::Dispatcher::singleton().findSchemaOrThrow((std::string("aten::") + op.name).c_str(), op.overload);
        if (!handle.hasComputedKernelForDispatchKey(c10::DispatchKey::CUDA)) continue;  // a process without cards
        auto kernel = std::make_unique<HostKernel>(op, handle.getComputedKernelForDispatchKey(c10::DispatchKey::CUDA));
        library.impl(c10::toString(handle.operator_name()).c_str(),
                     torch::CppFunction::makeFromBoxedFunctor(std::move(kernel)));
    }
}

}  // namespace vpp
