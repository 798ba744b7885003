#include "graph/jit_branches.hpp"

#include <algorithm>
#include <array>
#include <unordered_set>
#include <vector>

#include "graph/jit_alias.hpp"
#include "graph/jit_containers.hpp"
#include "graph/jit_graph.hpp"

namespace vpp {

using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Value;
namespace aten = torch::jit::aten;
namespace prim = torch::jit::prim;

namespace {

/// Ops whose result is what a model is, not what it is given. Sizes are not: those of a selection follow the data. Nor
/// are devices: what jit_device_answers leaves open may have another answer where ops are tried.
bool asks_for_form(const Node* node) {
    const std::array<c10::Symbol, 3> ops{aten::dim, prim::dtype, aten::is_floating_point};
    return std::ranges::find(ops, node->kind()) != ops.end();
}

/// Whether ops change it inside a branch or loop that it was not made in.
bool is_changed_inside(const Value* value) {
    return is_container(value) && std::ranges::any_of(value->uses(), [&](const torch::jit::Use& use) {
               const bool is_inside = use.user->owningBlock() != value->node()->owningBlock();
               return is_inside && changes(use.user, use.offset);
           });
}

/// Whether it is made of nothing but constants and forms.
bool is_fixed(const Value* value) {
    std::vector<const Value*> open{value};
    std::unordered_set<const Value*> seen{value};
    while (!open.empty()) {
        const Node* node = open.back()->node();
        if (is_changed_inside(open.back())) return false;
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

bool is_holder(const Value* value) {
    return is_container(value) || value->type()->kind() == c10::TypeKind::TupleType;
}

bool takes_element(const Node* node) {
    const std::array<c10::Symbol, 4> ops{aten::__getitem__, prim::ListUnpack, prim::TupleUnpack, prim::TupleIndex};
    const bool takes =
        std::ranges::find(ops, node->kind()) != ops.end() || is_op(node, "aten::pop") || is_op(node, "aten::get");
    return takes && is_holder(node->input(0));
}

/// Whether the place, part, number of times or key that an op of holders is given follows the data.
bool chooses_by_data(const Node* node) {
    const bool takes_holder =
        node->kind().is_aten() && std::any_of(node->inputs().begin(), node->inputs().end(), is_holder);
    if (!takes_holder && node->kind() != prim::DictConstruct) return false;
    return std::any_of(node->inputs().begin(), node->inputs().end(), [](const Value* input) {
        const bool is_device = input->type()->kind() == c10::TypeKind::DeviceObjType;
        return is_plain(*input->type()) && !is_device && !is_fixed(input);
    });
}

/// Whether it, or what it stands in, follows the data.
bool is_in_what_follows_data(const Node* node) {
    while (node && !follows_data(node)) node = node->owningBlock()->owningNode();
    return node;
}

bool is_changed_by_what_follows_data(const Value* container) {
    const bool has_tensors = holds_tensors(*container->type());
    return std::ranges::any_of(container->uses(), [has_tensors](const torch::jit::Use& use) {
        const bool is_change = changes(use.user, use.offset);
        if (is_change && has_tensors && chooses_by_data(use.user)) return true;
        return (is_change || !use.user->blocks().empty()) && is_in_what_follows_data(use.user);
    });
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

bool may_hold_others(const Value* container) {
    std::vector<const Value*> open{container};
    std::unordered_set<const Value*> seen{container};
    while (!open.empty()) {
        const Value* value = open.back();
        open.pop_back();
        if (follows_data(value->node()) || is_changed_by_what_follows_data(value)) return true;
        if (holds_tensors(*value->type()) && chooses_by_data(value->node())) return true;
        for (const Value* input : value->node()->inputs()) {
            if (is_holder(input) && seen.insert(input).second) open.push_back(input);
        }
    }
    return false;
}

bool may_give_others(const Node* node) {
    if (follows_data(node)) return true;
    return takes_element(node) && (chooses_by_data(node) || may_hold_others(node->input(0)));
}

}  // namespace vpp
