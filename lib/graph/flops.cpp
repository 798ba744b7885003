#include "graph/flops.hpp"

#include <algorithm>
#include <map>

#include "base/dtype.hpp"

namespace vpp {

namespace {

double elements(const Shape& shape) {
    return static_cast<double>(num_elements(shape));
}
double last_dim(const Shape& shape) {
    return shape.empty() ? 1 : static_cast<double>(shape.back());
}

using Shapes = std::vector<Shape>;
using Formula = double (*)(const Shapes& in, const Shapes& out);

/// out[..., n] of in[..., k]: 2 k per element.
double product(const Shapes& in, const Shapes& out) {
    return 2 * elements(out[0]) * last_dim(in[0]);
}
/// addmm(bias, a, b), baddbmm.
double added_product(const Shapes& in, const Shapes& out) {
    return 2 * elements(out[0]) * last_dim(in[1]);
}
/// weight [out, in/groups, kernel...]: each output element sums weight elements / out.
double convolution(const Shapes& in, const Shapes& out) {
    const double out_channels = std::max<double>(1, static_cast<double>(in[1].empty() ? 1 : in[1][0]));
    return 2 * elements(out[0]) * elements(in[1]) / out_channels;
}
/// Two products over [..., L, S] with head dim E; causal masks are not discounted.
double attention(const Shapes& in, const Shapes& out) {
    if (in[1].size() < 2) return elements(out[0]);
    return 4 * elements(in[0]) * static_cast<double>(in[1][in[1].size() - 2]);
}

const std::map<std::string, std::pair<Formula, size_t>>& formulas() {
    static const std::map<std::string, std::pair<Formula, size_t>> kFormulas{
        {"aten::linear", {product, 2}},
        {"aten::matmul", {product, 2}},
        {"aten::mm", {product, 2}},
        {"aten::bmm", {product, 2}},
        {"aten::mv", {product, 2}},
        {"aten::addmm", {added_product, 3}},
        {"aten::baddbmm", {added_product, 3}},
        {"aten::conv1d", {convolution, 2}},
        {"aten::conv2d", {convolution, 2}},
        {"aten::conv3d", {convolution, 2}},
        {"aten::_convolution", {convolution, 2}},
        {"aten::convolution", {convolution, 2}},
        {"aten::scaled_dot_product_attention", {attention, 3}},
    };
    return kFormulas;
}

}  // namespace

double op_flops(const std::string& kind, const std::vector<Shape>& inputs, const std::vector<Shape>& outputs,
                int64_t new_elements) {
    const auto found = formulas().find(kind);
    const bool known = found != formulas().end() && inputs.size() >= found->second.second && !outputs.empty();
    return known ? found->second.first(inputs, outputs) : static_cast<double>(new_elements);
}

}  // namespace vpp
