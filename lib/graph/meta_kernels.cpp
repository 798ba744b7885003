#include "graph/meta_kernels.hpp"

#include <ATen/EmptyTensor.h>
#include <ATen/TensorIterator.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/enum_tag.h>
#include <ATen/native/ConvUtils.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/result_type.h>
#include <sys/mman.h>
#include <torch/library.h>

#include <algorithm>
#include <array>

namespace vpp {

namespace {

using c10::DispatchKey;

/// Zeros on the CPU that take no memory until somebody writes them.
at::Tensor zeros_like_meta(const at::Tensor& meta) {
    const size_t num_bytes =
        at::detail::computeStorageNbytes(meta.sizes(), meta.strides(), meta.itemsize(), /*storage_offset=*/0);
    if (num_bytes == 0) return at::empty_strided(meta.sizes(), meta.strides(), meta.options().device(at::kCPU));
    void* memory = mmap(nullptr, num_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    TORCH_CHECK(memory != MAP_FAILED, "no address space for ", num_bytes, " bytes");
    const auto unmap = [num_bytes](void* mapped) { munmap(mapped, num_bytes); };
    return at::from_blob(memory, meta.sizes(), meta.strides(), unmap, meta.options().device(at::kCPU));
}

at::Tensor on_cpu(const at::Tensor& tensor) {
    return tensor.defined() && tensor.is_meta() ? zeros_like_meta(tensor) : tensor;
}

}  // namespace

c10::IValue zeros_on_cpu(const c10::IValue& argument) {
    if (argument.isTensor()) return on_cpu(argument.toTensor());
    if (argument.isDevice() && argument.toDevice().is_meta()) return at::Device(at::kCPU);
    if (!argument.isTensorList()) return argument;
    c10::List<at::Tensor> tensors;
    for (const at::Tensor& tensor : argument.toTensorVector()) tensors.push_back(on_cpu(tensor));
    return tensors;
}

namespace {

at::Tensor on_meta(const at::Tensor& tensor) {
    if (!tensor.defined()) return tensor;
    return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kMeta));
}

thread_local int64_t num_over_zeros = 0;

void run_over_zeros(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    ++num_over_zeros;
    const size_t num_arguments = op.schema().arguments().size();
    torch::jit::Stack call;
    for (const c10::IValue& argument : torch::jit::last(*stack, num_arguments)) call.push_back(zeros_on_cpu(argument));
    torch::jit::drop(*stack, num_arguments);
    op.callBoxedForDispatchKey(DispatchKey::CPU, call);
    for (const c10::IValue& result : call) stack->emplace_back(on_meta(result.toTensor()));
}

/// The same of an op that writes into its last argument, which may be empty: so where the op without `out` made it.
void run_into_over_zeros(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    ++num_over_zeros;
    const size_t num_arguments = op.schema().arguments().size();
    const at::Tensor out = stack->back().toTensor();
    torch::jit::Stack call;
    for (const c10::IValue& argument : torch::jit::last(*stack, num_arguments)) call.push_back(zeros_on_cpu(argument));
    call.back() = at::empty({0}, out.options().device(at::kCPU));
    torch::jit::drop(*stack, num_arguments);
    op.callBoxedForDispatchKey(DispatchKey::CPU, call);
    const at::Tensor made = call.back().toTensor();
    if (out.sizes() != made.sizes()) out.resize_(made.sizes()).as_strided_(made.sizes(), made.strides());
    stack->emplace_back(out);
}

at::Tensor convolve(const at::Tensor& input, const at::Tensor& weight, const std::optional<at::Tensor>& /*bias*/,
                    at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
                    at::IntArrayRef output_padding, int64_t groups) {
    const std::vector<int64_t> shape =
        transposed ? at::native::conv_input_size(input.sizes(), weight.sizes(), padding, output_padding, stride,
                                                 dilation, groups)
                   : at::native::conv_output_size(input.sizes(), weight.sizes(), padding, stride, dilation);
    const bool channels_last = at::native::mkldnn_conv_use_channels_last(input, weight);
    const auto last = input.dim() == 5 ? at::MemoryFormat::ChannelsLast3d : at::MemoryFormat::ChannelsLast;
    return at::empty(shape, input.options(), channels_last ? last : at::MemoryFormat::Contiguous);
}

// These two may be the largest tensors of a model, attention scores above all: their zeros would take memory.

at::Tensor relu_shape(const at::Tensor& input) {
    return at::clamp_min(input, 0);
}

at::Tensor where_shape(const at::Tensor& condition, const at::Tensor& input, const at::Tensor& other) {
    at::TensorIterator laid_out = at::TensorIteratorConfig()
                                      .check_all_same_dtype(false)
                                      .add_owned_output(at::Tensor())
                                      .add_owned_const_input(condition)
                                      .add_owned_const_input(input)
                                      .add_owned_const_input(other)
                                      .declare_static_dtype(at::result_type(input, other))
                                      .declare_static_device(at::kMeta)
                                      .build();
    return laid_out.output();
}

at::Tensor& where_shape_out(const at::Tensor& condition, const at::Tensor& input, const at::Tensor& other,
                            at::Tensor& out) {
    out.resize_(where_shape(condition, input, other).sizes());
    return out;
}

/// Whether it runs on meta as it is, by a kernel of its own or by one that is made of other ops.
bool runs_on_meta(const c10::OperatorHandle& op) {
    return std::ranges::any_of(
        std::array{DispatchKey::Meta, DispatchKey::CompositeExplicitAutograd, DispatchKey::CompositeImplicitAutograd,
                   DispatchKey::CompositeExplicitAutogradNonFunctional},
        [&](DispatchKey key) { return op.hasKernelForDispatchKey(key); });
}

/// Whether all it gives are tensors of their own, of shapes that follow from those that it takes.
bool follows_from_shapes(const c10::OperatorHandle& op) {
    const auto is_tensor = [](const c10::Argument& argument) {
        return argument.type()->isSubtypeOf(*c10::TensorType::get()) && argument.alias_info() == nullptr;
    };
    return !op.hasTag(at::Tag::data_dependent_output) && !op.hasTag(at::Tag::dynamic_output_shape) &&
           !op.schema().returns().empty() && std::ranges::all_of(op.schema().returns(), is_tensor) &&
           std::ranges::any_of(op.schema().arguments(), is_tensor);
}

/// Whether all it does is to write one tensor of its own into `out`, its last argument.
bool fills_out(const c10::OperatorHandle& op) {
    const auto& arguments = op.schema().arguments();
    const auto is_written = [](const c10::Argument& argument) {
        return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
    };
    return !op.hasTag(at::Tag::data_dependent_output) && !op.hasTag(at::Tag::dynamic_output_shape) &&
           op.schema().returns().size() == 1 && !arguments.empty() && arguments.back().name() == "out" &&
           arguments.back().type()->isSubtypeOf(*c10::TensorType::get()) &&
           std::ranges::count_if(arguments, is_written) == 1;
}

torch::Library make_library() {
    torch::Library library(torch::Library::IMPL, "aten", DispatchKey::Meta, __FILE__, __LINE__);
    library.impl("convolution_overrideable", convolve);
    library.impl("relu", relu_shape);
    library.impl("where.self", where_shape);
    library.impl("where.self_out", where_shape_out);
    c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
    for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
        const auto op = dispatcher.findSchema(name);
        if (!op || !name.name.starts_with("aten::") || !op->hasKernelForDispatchKey(DispatchKey::CPU)) continue;
        if (runs_on_meta(*op)) continue;
        if (follows_from_shapes(*op)) {
            library.impl(c10::toString(name).c_str(), torch::CppFunction::makeFromBoxedFunction<&run_over_zeros>());
        } else if (fills_out(*op)) {
            library.impl(c10::toString(name).c_str(),
                         torch::CppFunction::makeFromBoxedFunction<&run_into_over_zeros>());
        }
    }
    return library;
}

}  // namespace

void complete_meta_kernels() {
    static const torch::Library library = make_library();
}

int64_t num_runs_over_zeros() {
    return num_over_zeros;
}

}  // namespace vpp
