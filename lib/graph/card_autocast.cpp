#include "graph/card_autocast.hpp"

#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <span>

namespace vpp {

namespace {

/// A device whose tensors nobody has: its dispatch key carries the casts, its state their dtype.
constexpr c10::DeviceType kCarrier = c10::DeviceType::IPU;
constexpr c10::DispatchKey kKey = c10::DispatchKey::AutocastIPU;

// LibTorch's lists name an op, or an op and its overload: "aten::conv1d", "aten::pow, Scalar".
#define VPP_OP(...) "aten::" #__VA_ARGS__,
constexpr auto kToLower = std::to_array<const char*>({AT_FORALL_LOWER_PRECISION_FP(VPP_OP)});
constexpr auto kToFloat = std::to_array<const char*>({AT_FORALL_FP32(VPP_OP)});
constexpr auto kIntoFloat = std::to_array<const char*>({AT_FORALL_FP32_SET_OPT_DTYPE(VPP_OP)});
constexpr auto kToWidest = std::to_array<const char*>({AT_FORALL_PROMOTE(VPP_OP)});
#undef VPP_OP
// On cards they are one op of cuDNN, whose arguments LibTorch casts so (aten/src/ATen/cudnn/AutocastRNN.cpp).
constexpr auto kRecurrent = std::to_array<const char*>(
    {"aten::lstm, input", "aten::gru, input", "aten::rnn_tanh, input", "aten::rnn_relu, input"});

using Arguments = std::span<c10::IValue>;
using Cast = void (*)(Arguments arguments);

at::ScalarType lower_dtype() {
    return at::autocast::get_autocast_dtype(kCarrier);
}

bool is_cast(const at::Tensor& tensor) {
    return tensor.defined() && tensor.is_floating_point() && tensor.scalar_type() != at::kDouble;
}

at::Tensor cast(const at::Tensor& tensor, at::ScalarType dtype) {
    return is_cast(tensor) ? tensor.to(dtype) : tensor;
}

void cast_all(Arguments arguments, at::ScalarType dtype) {
    for (c10::IValue& argument : arguments) {
        if (argument.isTensor()) argument = cast(argument.toTensor(), dtype);
        if (!argument.isTensorList()) continue;
        c10::List<at::Tensor> tensors;
        for (const at::Tensor& tensor : argument.toTensorVector()) tensors.push_back(cast(tensor, dtype));
        argument = std::move(tensors);
    }
}

void to_lower(Arguments arguments) {
    cast_all(arguments, lower_dtype());
}

void to_float(Arguments arguments) {
    cast_all(arguments, at::kFloat);
}

void to_widest(Arguments arguments) {
    const auto is_wide = [](const at::Tensor& tensor) { return is_cast(tensor) && tensor.scalar_type() == at::kFloat; };
    const bool any_is_wide = std::ranges::any_of(arguments, [&](const c10::IValue& argument) {
        return (argument.isTensor() && is_wide(argument.toTensor())) ||
               (argument.isTensorList() && std::ranges::any_of(argument.toTensorVector(), is_wide));
    });
    cast_all(arguments, any_is_wide ? at::kFloat : lower_dtype());
}

Arguments arguments_on(torch::jit::Stack& stack, size_t count) {
    return Arguments(stack).last(count);
}

template <Cast cast>
void run_cast(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    const c10::impl::ExcludeDispatchKeyGuard no_second_time(kKey);
    cast(arguments_on(*stack, op.schema().arguments().size()));
    op.callBoxed(*stack);
}

/// Ops with an argument `dtype`: float32 where it says nothing.
void run_into_float(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    const c10::impl::ExcludeDispatchKeyGuard no_second_time(kKey);
    const Arguments arguments = arguments_on(*stack, op.schema().arguments().size());
    c10::IValue& dtype = arguments[static_cast<size_t>(op.schema().argumentIndexWithName("dtype").value())];
    if (dtype.isNone() && is_cast(arguments.front().toTensor())) dtype = at::kFloat;
    op.callBoxed(*stack);
}

/// Norms that have a twin with an argument more, the dtype.
template <const char* twin>
void run_norm(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    const c10::impl::ExcludeDispatchKeyGuard no_second_time(kKey);
    const at::Tensor input = arguments_on(*stack, op.schema().arguments().size()).front().toTensor();
    stack->emplace_back(is_cast(input) ? at::kFloat : input.scalar_type());
    c10::Dispatcher::singleton().findSchemaOrThrow("aten::norm", twin).callBoxed(*stack);
}
constexpr char kWholeNorm[] = "ScalarOpt_dtype", kNormOfDims[] = "ScalarOpt_dim_dtype";

void refuse(const c10::OperatorHandle& /*op*/, torch::jit::Stack* /*stack*/) {
    TORCH_CHECK(false,
                "autocast on cards does not run it, since its gradient may not fit into half precision; "
                "binary_cross_entropy_with_logits in place of sigmoid and it is safe");
}

/// As the dispatcher has it: "aten::pow.Scalar".
std::string full_name(std::string listed) {
    const size_t comma = listed.find(", ");
    return comma == std::string::npos ? listed : listed.replace(comma, 2, ".");
}

template <auto run>
void add(torch::Library& library, std::span<const char* const> listed) {
    for (const char* op : listed) {
        library.impl(full_name(op).c_str(), torch::CppFunction::makeFromBoxedFunction<run>());
    }
}

TORCH_LIBRARY_IMPL(aten, AutocastIPU, library) {
    add<&run_cast<to_lower>>(library, kToLower);
    add<&run_cast<to_lower>>(library, kRecurrent);
    add<&run_cast<to_float>>(library, kToFloat);
    add<&run_cast<to_widest>>(library, kToWidest);
    add<&run_into_float>(library, kIntoFloat);
    library.impl("norm.Scalar", torch::CppFunction::makeFromBoxedFunction<&run_norm<kWholeNorm>>());
    library.impl("norm.ScalarOpt_dim", torch::CppFunction::makeFromBoxedFunction<&run_norm<kNormOfDims>>());
    library.impl("binary_cross_entropy", torch::CppFunction::makeFromBoxedFunction<&refuse>());
}

TORCH_LIBRARY_IMPL(_, AutocastIPU, library) {
    library.fallback(torch::CppFunction::makeFallthrough());
}

bool has(std::span<const char* const> listed, const std::string& name) {
    return std::ranges::any_of(listed, [&](const char* op) { return full_name(op) == name; });
}

}  // namespace

CardAutocastScope::CardAutocastScope(std::optional<c10::ScalarType> dtype) : scope_(kCarrier, dtype), included_(kKey) {}

c10::DeviceType casting_device(c10::DeviceType device) {
    if (c10::impl::tls_is_dispatch_key_included(kKey)) return kCarrier;
    return device == c10::DeviceType::Meta ? c10::DeviceType::CPU : device;
}

void cast_as_on_cards(const std::string& name, std::vector<c10::IValue>& arguments) {
    const c10::impl::ExcludeDispatchKeyGuard not_its_own(kKey);
    if (has(kToLower, name)) to_lower(arguments);
    if (has(kToFloat, name)) to_float(arguments);
}

}  // namespace vpp
