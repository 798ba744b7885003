#include "graph/jit_branches.hpp"

#include <algorithm>
#include <array>
#include <unordered_set>
#include <vector>

#include "graph/jit_alias.hpp"

namespace vpp {

using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Value;
namespace aten = torch::jit::aten;
namespace prim = torch::jit::prim;

namespace {

/// Ops whose result is what a model is, not what it is given. Sizes are not: those of a selection follow the data.
bool asks_for_form(const Node* node) {
    const std::array<c10::Symbol, 4> ops{aten::dim, prim::dtype, prim::device, aten::is_floating_point};
    return std::ranges::find(ops, node->kind()) != ops.end();
}

/// Whether it is made of nothing but constants and forms.
bool is_fixed(const Value* value) {
    std::vector<const Value*> open{value};
    std::unordered_set<const Value*> seen{value};
    while (!open.empty()) {
        const Node* node = open.back()->node();
        open.pop_back();
        if (node->kind() == prim::Constant || asks_for_form(node)) continue;
        const bool computes = node->kind() != prim::Param && node->blocks().empty() && !node->isNondeterministic();
        if (!computes) return false;
        for (const Value* input : node->inputs()) {
            if (is_tensor(*input->type())) return false;
            if (seen.insert(input).second) open.push_back(input);
        }
    }
    return true;
}

bool has_inside(const Block* block) {
    return std::any_of(block->nodes().begin(), block->nodes().end(), follows_data);
}

}  // namespace

bool follows_data(const Node* node) {
    if (node->blocks().empty()) return false;
    const bool is_loop = node->kind() == prim::Loop;
    const bool is_known =
        is_loop ? is_fixed(node->input(0)) && is_fixed(node->input(1)) && is_fixed(node->blocks()[0]->outputs()[0])
                : node->kind() == prim::If && is_fixed(node->input(0));
    return !is_known || std::ranges::any_of(node->blocks(), has_inside);
}

}  // namespace vpp
