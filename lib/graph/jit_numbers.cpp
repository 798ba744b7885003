#include "graph/jit_numbers.hpp"

#include <torch/csrc/jit/ir/constants.h>

#include <set>
#include <string>
#include <unordered_set>

namespace vpp {

using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Value;

namespace {

bool is_number(const Value* value) {
    const auto constant = torch::jit::toIValue(value);
    return constant && constant->isTensor() && constant->toTensor().defined() && is_python_number(constant->toTensor());
}

class Restorer {
  public:
    explicit Restorer(torch::jit::Graph& graph) : graph_(graph) {}

    void visit(Block* block) {
        for (Node* node : block->nodes()) {
            for (Block* inner : node->blocks()) visit(inner);
            if (node->kind() == torch::jit::prim::NumToTensor) of_sizes_.insert(node->output());
            if (node->inputs().size() >= 2) visit_operands(node);
        }
    }

  private:
    void visit_operands(Node* node) {
        const bool calculates = is_operand(node, 0) && is_operand(node, 1);
        if (calculates && is_of_sizes(node->input(0)) && is_of_sizes(node->input(1))) of_sizes_.insert(node->output());
        for (size_t i : {0, 1}) {
            const bool is_one = is_operand(node, i) && is_number(node->input(i));
            if (is_one && !is_of_sizes(node->input(1 - i))) restore(node, i);
        }
    }

    bool is_of_sizes(const Value* value) const { return of_sizes_.contains(value) || is_number(value); }

    void restore(Node* node, size_t input) {
        at::Tensor number = torch::jit::toIValue(node->input(input))->toTensor().detach();
        number.unsafeGetTensorImpl()->set_wrapped_number(true);
        const torch::jit::WithInsertPoint before(node);
        node->replaceInput(input, graph_.insertConstant(number));
    }

    torch::jit::Graph& graph_;
    std::unordered_set<const Value*> of_sizes_;  ///< calculated of sizes and numbers alone
};

}  // namespace

bool is_python_number(const at::Tensor& constant) {
    const auto dtype = constant.scalar_type();
    const bool as_python_has_it = dtype == at::kDouble || dtype == at::kLong || dtype == at::kBool;
    return constant.dim() == 0 && constant.is_cpu() && as_python_has_it;
}

bool is_operand(const Node* op, size_t input) {
    static const std::set<std::string> kOps{"aten::add",  "aten::sub",          "aten::rsub", "aten::mul",
                                            "aten::div",  "aten::true_divide",  "aten::pow",  "aten::remainder",
                                            "aten::fmod", "aten::floor_divide", "aten::eq",   "aten::ne",
                                            "aten::lt",   "aten::le",           "aten::gt",   "aten::ge"};
    static const std::set<std::string> kOpsInPlace{"aten::add_", "aten::sub_", "aten::mul_", "aten::div_",
                                                   "aten::pow_"};
    const std::string kind = op->kind().toQualString();
    return input < 2 && (kOps.contains(kind) || (kOpsInPlace.contains(kind) && input == 1));
}

void restore_numbers(torch::jit::Graph& graph) {
    Restorer(graph).visit(graph.block());
}

}  // namespace vpp
