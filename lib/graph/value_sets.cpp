#include "graph/value_sets.hpp"

#include <utility>

#include "graph/jit_alias.hpp"

namespace vpp {

using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Value;

namespace {

void add_values(const at::ArrayRef<const Value*> from, std::vector<const Value*>& to) {
    for (const Value* value : from) {
        if (!is_plain(*value->type())) to.push_back(value);
    }
}

void add_node(const Node* node, std::vector<const Value*>& values) {
    add_values(node->inputs(), values);
    add_values(node->outputs(), values);
    for (const Block* block : node->blocks()) {
        add_values(block->inputs(), values);
        add_values(block->outputs(), values);
        for (const Node* inner : block->nodes()) add_node(inner, values);
    }
}

}  // namespace

const Value* ValueSets::find(const Value* value) {
    const Value* root = value;
    for (auto up = parent_.find(root); up != parent_.end(); up = parent_.find(root)) root = up->second;
    while (value != root) value = std::exchange(parent_[value], root);
    return root;
}

void ValueSets::join(const Value* a, const Value* b) {
    if (find(a) != find(b)) parent_[find(a)] = find(b);
}

std::vector<const Value*> values_touched(const Node* node) {
    std::vector<const Value*> values;
    add_node(node, values);
    return values;
}

void join_memory(const Node* node, const std::vector<const Value*>& values, ValueSets& sets) {
    if (makes_fresh_memory(node)) return;
    for (const Value* value : values) sets.join(value, values.front());
}

}  // namespace vpp
