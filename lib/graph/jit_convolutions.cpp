// Tracing writes a convolution as aten::_convolution, whatever the model called, with the flags that cuDNN had on the
// machine of the trace: on a card it would use TF32 and choose among kernels of different bits, whatever is set there.
// Nor does LibTorch's autocast for CPUs know it: a traced model would convolve in float32 where a scripted one is cast.
#include <torch/csrc/jit/ir/constants.h>

#include "graph/jit_graph.hpp"

namespace vpp {

using torch::jit::Node;
using torch::jit::Value;

namespace {

// Where aten::_convolution has its arguments; behind them come flags of cuDNN.
enum Argument : size_t { kInput, kWeight, kBias, kStride, kPadding, kDilation, kTransposed, kOutputPadding, kGroups };

using Order = std::vector<size_t>;
const Order kForward{kInput, kWeight, kBias, kStride, kPadding, kDilation, kGroups};
const Order kTransposedForward{kInput, kWeight, kBias, kStride, kPadding, kOutputPadding, kGroups, kDilation};

/// Dimensions of space, 1 to 3; 0 when the strides are not known.
size_t num_dimensions(const Node* node) {
    const Value* stride = node->input(kStride);
    const auto constant = torch::jit::toIValue(stride);
    const bool listed = stride->node()->kind() == torch::jit::prim::ListConstruct;
    const size_t found = listed                              ? stride->node()->inputs().size()
                         : constant && constant->isIntList() ? constant->toIntVector().size()
                                                             : 0;
    return found <= 3 ? found : 0;
}

/// Puts the op of this name, with one of these arguments after the other, in the place of the node.
void replace(Node* node, const std::string& name, const Order& order) {
    std::vector<Value*> inputs;
    for (const size_t argument : order) inputs.push_back(node->input(argument));
    const auto kind = c10::Symbol::fromQualString(name + std::to_string(num_dimensions(node)) + "d");
    Node* named = node->owningGraph()->create(kind, inputs)->insertBefore(node);
    named->copyMetadata(node);
    named->output()->copyMetadata(node->output());
    node->output()->replaceAllUsesWith(named->output());
    node->destroy();
}

void name_convolution(Node* node) {
    if (num_dimensions(node) == 0) return;
    const auto transposed = torch::jit::toIValue(node->input(kTransposed));
    if (!transposed || !transposed->isBool()) return;
    if (transposed->toBool()) {
        replace(node, "aten::conv_transpose", kTransposedForward);
    } else {
        replace(node, "aten::conv", kForward);
    }
}

/// Of a padding that is named by a word ("same"): the arguments are those of the op that was called.
void name_padded_convolution(Node* node) {
    if (num_dimensions(node) > 0) replace(node, "aten::conv", {0, 1, 2, 3, 4, 5, 6});
}

void name_in_block(torch::jit::Block* block) {
    static const auto kConvolution = c10::Symbol::fromQualString("aten::_convolution");
    static const auto kPadded = c10::Symbol::fromQualString("aten::_convolution_mode");
    for (auto it = block->nodes().begin(); it != block->nodes().end();) {
        Node* node = *it++;
        for (torch::jit::Block* inner : node->blocks()) name_in_block(inner);
        if (node->kind() == kConvolution) {
            name_convolution(node);
        } else if (node->kind() == kPadded) {
            name_padded_convolution(node);
        }
    }
}

}  // namespace

void name_convolutions(JitGraph& jit) {
    name_in_block(jit.graph->block());
}

}  // namespace vpp
