#include "graph/flops.hpp"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/error.hpp"

namespace vpp {

namespace {

using Values = c10::ArrayRef<const c10::IValue>;

/// Outputs are known behind a kernel, and what it takes before it alone.
struct Cost {
    double whole = 0;
    double of_each_output = 0;  ///< element
};
using Formula = Cost (*)(Values in);

/// What this thread counts; a kernel that is counted has none inside of it.
struct Count {
    double flops = 0;
    bool is_on = false, is_inside = false;
};
thread_local Count count;

double elements(const at::Tensor& tensor) {
    return static_cast<double>(tensor.numel());
}
double last_size(const at::Tensor& tensor) {
    return tensor.dim() == 0 ? 1 : static_cast<double>(tensor.size(-1));
}

/// out[..., n] of in[..., k]
Cost product(Values in) {
    return {0, 2 * last_size(in[0].toTensor())};
}
/// (bias, a, b)
Cost added_product(Values in) {
    return {0, 2 * last_size(in[1].toTensor())};
}
/// (input, weight, bias, stride, padding, dilation, transposed, ...). weight [out, in/groups, kernel...]: each output
/// element sums weight elements / out. Transposed, weight [in, out/groups, kernel...]: each input element is spread so.
Cost convolution(Values in) {
    const at::Tensor& weight = in[1].toTensor();
    if (weight.dim() == 0 || weight.size(0) == 0) return {};
    const double each = 2 * elements(weight) / static_cast<double>(weight.size(0));
    return in[6].toBool() ? Cost{each * elements(in[0].toTensor()), 0} : Cost{0, each};
}
/// oneDNN's recurrent layer (input [t, n, i], weights of inputs, weights of states, ...): each weight once a position.
Cost recurrent_layer(Values in) {
    const at::Tensor& input = in[0].toTensor();
    const double positions = elements(input) / std::max(1.0, last_size(input));
    return {2 * positions * (elements(in[1].toTensor()) + elements(in[2].toTensor())), 0};
}
/// Two products over [..., l, s] with head dim e.
double attention(at::IntArrayRef query, at::IntArrayRef key) {
    if (key.size() < 2) return 0;
    return 4 * static_cast<double>(c10::multiply_integers(query)) * static_cast<double>(key[key.size() - 2]);
}
Cost attention_op(Values in) {
    return {attention(in[0].toTensor().sizes(), in[1].toTensor().sizes()), 0};
}

const std::map<std::string, Formula>& formulas() {
    static const std::map<std::string, Formula> kFormulas{
        {"aten::mm", product},
        {"aten::bmm", product},
        {"aten::mv", product},
        {"aten::dot", product},
        {"aten::addmm", added_product},
        {"aten::addmv", added_product},
        {"aten::baddbmm", added_product},
        {"aten::convolution", convolution},
        {"aten::_convolution", convolution},
        {"aten::mkldnn_rnn_layer", recurrent_layer},
        {"aten::scaled_dot_product_attention", attention_op},
    };
    return kFormulas;
}

struct CountedKernel final : at::ObserverContext {
    explicit CountedKernel(Cost its_cost) : cost(its_cost) {}
    Cost cost;
};

/// An interpreter's whole stack is told; what the kernel takes and gives is on top of it.
Values top_of(Values stack, size_t count) {
    return stack.slice(stack.size() - std::min(stack.size(), count));
}

std::unique_ptr<at::ObserverContext> begin_kernel(const at::RecordFunction& kernel) {
    if (count.is_inside) return nullptr;
    const auto found = formulas().find(kernel.name());
    if (found == formulas().end()) return nullptr;
    auto counted = std::make_unique<CountedKernel>(found->second(top_of(kernel.inputs(), kernel.num_inputs())));
    count.is_inside = true;
    return counted;
}

void end_kernel(const at::RecordFunction& kernel, at::ObserverContext* context) {
    const auto* counted = static_cast<const CountedKernel*>(context);
    if (counted == nullptr) return;
    count.is_inside = false;
    const std::vector<c10::IValue>& stack = kernel.outputs();
    const Values outputs = top_of(Values(stack.data(), stack.size()), kernel.num_outputs());
    if (outputs.empty()) return;  // it has failed
    count.flops += counted->cost.whole + counted->cost.of_each_output * elements(outputs[0].toTensor());
}

}  // namespace

FlopCounter::FlopCounter() {
    check(!std::exchange(count.is_on, true), "a thread counts once");
    count.flops = 0;
    at::RecordFunctionCallback callback(begin_kernel, end_kernel);
    callback.needsInputs(true).needsOutputs(true).scopes({at::RecordScope::FUNCTION});
    callback_ = at::addThreadLocalCallback(callback);
}

FlopCounter::~FlopCounter() {
    at::removeCallback(callback_);
    count.is_on = false;
}

double FlopCounter::take() {
    return std::exchange(count.flops, 0);
}

void count_attention(at::IntArrayRef query, at::IntArrayRef key) {
    count.flops += attention(query, key);
}

}  // namespace vpp
