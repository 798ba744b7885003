#include "graph/jit_device.hpp"

#include <ATen/core/Tensor.h>
#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "graph/jit_numbers.hpp"

namespace vpp {

using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Value;

namespace {

bool takes_tensors(const c10::FunctionSchema& schema) {
    return std::any_of(schema.arguments().begin(), schema.arguments().end(), [](const c10::Argument& argument) {
        const std::string type = argument.type()->str();
        return type.find("Tensor") != std::string::npos;
    });
}

/// Which input of an op that makes a tensor out of nothing says where.
std::optional<size_t> device_input_of_factory(const Node* node) {
    const c10::FunctionSchema* schema = node->maybeSchema();
    if (schema == nullptr || takes_tensors(*schema)) return std::nullopt;
    const std::optional<int> index = schema->argumentIndexWithName("device");
    if (!index || static_cast<size_t>(*index) >= node->inputs().size()) return std::nullopt;
    return static_cast<size_t>(*index);
}

/// Whether every use turns the tensor into a number, which would have to be fetched from the device.
bool is_read_as_number(const Value* tensor) {
    static const std::set<std::string> kReaders{"aten::Int",  "aten::Float",          "aten::Bool",
                                                "aten::item", "aten::ScalarImplicit", "aten::IntImplicit"};
    return std::all_of(tensor->uses().begin(), tensor->uses().end(),
                       [](const torch::jit::Use& use) { return kReaders.contains(use.user->kind().toQualString()); });
}

/// Whether every use is arithmetic that takes a number of the host beside a tensor of a card. It may go by another
/// formula then (a division multiplies by the reciprocal), as it does in the Python code that was traced.
bool is_only_operand(const Value* number) {
    return std::all_of(number->uses().begin(), number->uses().end(),
                       [](const torch::jit::Use& use) { return is_operand(use.user, use.offset); });
}

/// Which input of an op lies on the host wherever the op computes.
std::optional<size_t> host_input(const Node* node) {
    const c10::FunctionSchema* schema = node->maybeSchema();
    if (schema == nullptr) return std::nullopt;
    static const std::map<std::string, std::string> kHostArguments{
        {"aten::_pack_padded_sequence", "lengths"},
        {"aten::_pad_packed_sequence", "batch_sizes"},
        {"aten::lstm", "batch_sizes"},
        {"aten::gru", "batch_sizes"},
        {"aten::rnn_tanh", "batch_sizes"},
        {"aten::rnn_relu", "batch_sizes"},
        {"aten::tensor_split", "tensor_indices_or_sections"},
    };
    const auto found = kHostArguments.find(schema->name());
    if (found == kHostArguments.end()) return std::nullopt;
    const std::optional<int> index = schema->argumentIndexWithName(found->second);
    return index ? std::optional(static_cast<size_t>(*index)) : std::nullopt;
}

class Placer {
  public:
    Placer(torch::jit::Graph& graph, at::Device device) : graph_(graph), device_(device) {}

    void place(Block* block) {
        for (auto it = block->nodes().begin(); it != block->nodes().end();) {
            Node* node = *it++;
            for (Block* inner : node->blocks()) place(inner);
            if (node->kind() == torch::jit::prim::Constant) {
                place_constant(node);
            } else if (node->kind() == kToHost) {
                node->output()->replaceAllUsesWith(node->input());
                node->destroy();
            } else {
                place_factory(node);
                place_host_input(node);
            }
        }
    }

  private:
    void place_constant(Node* node) {
        const std::optional<c10::IValue> value = torch::jit::toIValue(node->output());
        if (!value) return;
        if (value->isDevice()) {
            replace(node, device_);
        } else if (value->isTensor() && value->toTensor().defined() && !stays(node->output(), value->toTensor())) {
            replace(node, placed(value->toTensor()));
        }
    }

    static bool stays(const Value* constant, const at::Tensor& tensor) {
        return is_read_as_number(constant) || (is_python_number(tensor) && is_only_operand(constant));
    }

    /// One copy of what lies in one place, however many ops have it.
    at::Tensor placed(const at::Tensor& tensor) {
        for (const auto& [from, copy] : copies_) {
            const bool alike = from.data_ptr() == tensor.data_ptr() && from.scalar_type() == tensor.scalar_type() &&
                               from.sizes() == tensor.sizes() && from.strides() == tensor.strides();
            if (alike) return copy.detach();
        }
        return copies_.emplace_back(tensor, tensor.to(device_)).second;
    }

    void place_factory(Node* node) {
        const std::optional<size_t> input = device_input_of_factory(node);
        if (!input || !node->input(*input)->mustBeNone()) return;
        const torch::jit::WithInsertPoint before(node);
        node->replaceInput(*input, graph_.insertConstant(device_));
    }

    /// What lies on the host already stays as it is.
    void place_host_input(Node* node) {
        const std::optional<size_t> input = host_input(node);
        if (!input) return;
        const torch::jit::WithInsertPoint before(node);
        node->replaceInput(*input, graph_.insert(kToHost, {node->input(*input)}));
    }

    void replace(Node* constant, const c10::IValue& value) {
        const torch::jit::WithInsertPoint before(constant);
        constant->output()->replaceAllUsesWith(graph_.insertConstant(value));
        constant->destroy();
    }

    const c10::Symbol kToHost = c10::Symbol::fromQualString("aten::cpu");
    torch::jit::Graph& graph_;
    at::Device device_;
    std::vector<std::pair<at::Tensor, at::Tensor>> copies_;  ///< constants, each with its copy
};

}  // namespace

void place_graph(torch::jit::Graph& graph, at::Device device) {
    Placer(graph, device).place(graph.block());
}

}  // namespace vpp
