#include "graph/meta_layouts.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/native/ConvUtils.h>
#include <ATen/native/utils/ParamUtils.h>

#include <array>
#include <cstring>

#include "graph/meta_forms.hpp"

namespace vpp {

namespace {

using GivenInputs = std::vector<c10::IValue>;
using OutputOrder = std::optional<at::MemoryFormat>;

OutputOrder as_input(const GivenInputs& inputs, at::Device target) {
    return target.is_cpu() ? OutputOrder(inputs.at(0).toTensor().suggest_memory_format()) : std::nullopt;
}

/// pad(input, pad, mode, value). The other modes, and reflections of images, are the same everywhere.
OutputOrder of_padding(const GivenInputs& inputs, at::Device target) {
    const std::string mode = inputs.at(2).toStringRef();
    const size_t num_sides = inputs.at(1).toIntVector().size();
    const bool ordered = mode == "replicate" ? num_sides > 2 : mode == "reflect" && num_sides == 6;
    return ordered ? as_input(inputs, target) : std::nullopt;
}

/// max_pool1d(input, ...). The CPU's is another op where no backward will ask for the places.
OutputOrder of_max_pool1d(const GivenInputs& inputs, at::Device target) {
    const bool has_backward = inputs.at(0).toTensor().requires_grad() && at::GradMode::is_enabled();
    return target.is_cpu() && !has_backward ? OutputOrder(at::MemoryFormat::Contiguous) : std::nullopt;
}

OutputOrder of_one_hot(const GivenInputs& /*inputs*/, at::Device /*target*/) {
    return at::MemoryFormat::Contiguous;
}

/// What a convolution has beside its input and weight.
struct Convolution {
    c10::IValue stride, padding, dilation, output_padding;  ///< of each dim; None: 0; "same", "valid"
    bool transposed = false;
    int64_t groups = 1;
};

std::vector<c10::SymInt> of_each_dim(const c10::IValue& numbers, int64_t num_dims) {
    std::vector<int64_t> given = numbers.isNone() ? std::vector<int64_t>{0} : numbers.toIntVector();
    given = at::native::expand_param_if_needed(given, "a convolution's numbers", num_dims);
    return {given.begin(), given.end()};
}

/// The CPU has several libraries for them, of which one has no other order, and each wants other shapes.
OutputOrder of_convolution(const GivenInputs& inputs, const Convolution& convolution, at::Device target) {
    const at::Tensor input = inputs.at(0).toTensor(), weight = inputs.at(1).toTensor();
    const int64_t num_dims = weight.dim() - 2;
    if (!target.is_cpu() || num_dims < 2 || input.dim() != weight.dim()) return std::nullopt;
    const auto each = [&](const c10::IValue& numbers) { return of_each_dim(numbers, num_dims); };
    // How much "same" is makes no difference; it was found to fit.
    const c10::IValue padding = convolution.padding.isString() ? weight.sizes().slice(2) : convolution.padding;
    const at::Tensor input_twin = cpu_twin(input), weight_twin = cpu_twin(weight);
    const at::native::ConvBackend backend = at::native::select_conv_backend(
        input_twin, weight_twin, /*bias=*/std::nullopt, each(convolution.stride), each(padding),
        each(convolution.dilation), convolution.transposed, each(convolution.output_padding), convolution.groups,
        /*bias_sizes=*/std::nullopt);
    return at::native::_determine_backend_memory_format(input_twin, weight_twin, backend);
}

/// conv2d(input, weight, bias, stride, padding, dilation, groups)
OutputOrder of_conv(const GivenInputs& inputs, at::Device target) {
    return of_convolution(inputs, {inputs.at(3), inputs.at(4), inputs.at(5), {}, false, inputs.at(6).toInt()}, target);
}

/// conv_transpose2d(input, weight, bias, stride, padding, output_padding, groups, dilation)
OutputOrder of_conv_transpose(const GivenInputs& inputs, at::Device target) {
    return of_convolution(inputs, {inputs.at(3), inputs.at(4), inputs.at(7), inputs.at(5), true, inputs.at(6).toInt()},
                          target);
}

/// convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups), as traces have it.
OutputOrder of_any_conv(const GivenInputs& inputs, at::Device target) {
    const bool transposed = inputs.at(6).toBool();
    return of_convolution(
        inputs, {inputs.at(3), inputs.at(4), inputs.at(5), inputs.at(7), transposed, inputs.at(8).toInt()}, target);
}

struct LayoutRow {
    const char* kind;
    MetaLayout layout;
};

constexpr std::array kLayoutRows{
    LayoutRow{"aten::group_norm", as_input},
    LayoutRow{"aten::pixel_shuffle", as_input},
    LayoutRow{"aten::pixel_unshuffle", as_input},
    LayoutRow{"aten::native_channel_shuffle", as_input},
    LayoutRow{"aten::replication_pad2d", as_input},
    LayoutRow{"aten::replication_pad3d", as_input},
    LayoutRow{"aten::reflection_pad3d", as_input},
    LayoutRow{"aten::pad", of_padding},
    LayoutRow{"aten::max_pool1d", of_max_pool1d},
    LayoutRow{"aten::one_hot", of_one_hot},
    LayoutRow{"aten::conv2d", of_conv},
    LayoutRow{"aten::conv3d", of_conv},
    LayoutRow{"aten::conv_transpose2d", of_conv_transpose},
    LayoutRow{"aten::conv_transpose3d", of_conv_transpose},
    LayoutRow{"aten::convolution", of_any_conv},
    LayoutRow{"aten::_convolution", of_any_conv},
};

}  // namespace

MetaLayout find_meta_layout(const char* kind) {
    for (const LayoutRow& row : kLayoutRows) {
        if (std::strcmp(row.kind, kind) == 0) return row.layout;
    }
    return nullptr;
}

}  // namespace vpp
