// The op list and what an op uses.
#include <algorithm>

#include "graph/jit_graph.hpp"

namespace vpp {

using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Value;

namespace {

bool is_reseed(const Node* node) {
    return node->kind() == c10::Symbol::fromQualString("vpp::reseed");
}

bool is_defined_inside(const Value* value, const Node* outer) {
    const Node* owner = value->node()->owningBlock()->owningNode();
    while (owner && owner != outer) owner = owner->owningBlock()->owningNode();
    return owner == outer;
}

void collect(Node* node, const Node* outer, std::vector<Value*>& used) {
    if (is_reseed(node)) return;
    auto add = [&](Value* value) {
        const bool constant = value->node()->kind() == torch::jit::prim::Constant;
        if (constant || is_defined_inside(value, outer)) return;
        if (std::find(used.begin(), used.end(), value) == used.end()) used.push_back(value);
    };
    for (Value* input : node->inputs()) add(input);
    for (Block* block : node->blocks()) {
        for (Node* inner : block->nodes()) collect(inner, outer, used);
        for (Value* output : block->outputs()) add(output);
    }
}

}  // namespace

std::vector<Value*> values_used(Node* node) {
    std::vector<Value*> used;
    collect(node, node, used);
    return used;
}

void list_ops(JitGraph& jit) {
    jit.ops.clear();
    for (Node* node : jit.graph->nodes()) {
        if (node->kind() != torch::jit::prim::Constant) jit.ops.push_back({node});
    }
}

}  // namespace vpp
