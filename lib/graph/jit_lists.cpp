// Lists that grow: `l.append(x)` becomes `l' = l + [x]` where nobody else holds the list, and what comes behind uses
// l'. The same elements in the same order, but no value changes after it was made, so that it can live across a cut.
#include <algorithm>
#include <array>

#include "graph/jit_graph.hpp"

namespace vpp {

using torch::jit::Node;
using torch::jit::Value;
namespace aten = torch::jit::aten;
namespace prim = torch::jit::prim;

namespace {

/// Ops that read a list and keep nothing of it but its elements.
bool only_reads(const Node* node) {
    const std::array<c10::Symbol, 7> readers{aten::cat, aten::stack,      aten::__getitem__, aten::len,
                                             aten::add, prim::ListUnpack, aten::append};
    return std::find(readers.begin(), readers.end(), node->kind()) != readers.end();
}

/// Whether the list is made in the same block and known by one name only.
bool is_unshared(const Value* list, const Node* append) {
    const bool made_here = list->node()->owningBlock() == append->owningBlock() &&
                           (list->node()->kind() == prim::ListConstruct || list->node()->kind() == aten::add);
    return made_here && std::all_of(list->uses().begin(), list->uses().end(),
                                    [](const torch::jit::Use& use) { return only_reads(use.user); });
}

void replace_append(torch::jit::Graph& graph, Node* append) {
    Value* list = append->input(0);
    const torch::jit::WithInsertPoint here(append);
    Node* tail = graph.insertNode(graph.createList(append->input(1)->type(), {append->input(1)}));
    Node* longer = graph.insertNode(graph.create(aten::add, {list, tail->output()}));
    longer->output()->setType(list->type());
    set_module(tail, module_of(append));
    set_module(longer, module_of(append));
    append->output()->replaceAllUsesWith(longer->output());
    list->replaceAllUsesAfterNodeWith(append, longer->output());
    append->destroy();
}

/// A cast to the type that a list has already gives it a second name.
void remove_idle_cast(Node* cast) {
    const bool idle =
        cast->output()->type()->cast<c10::ListType>() && *cast->input()->type() == *cast->output()->type();
    if (!idle) return;
    cast->output()->replaceAllUsesWith(cast->input());
    cast->destroy();
}

}  // namespace

void replace_appends(JitGraph& jit) {
    for (auto it = jit.graph->nodes().begin(); it != jit.graph->nodes().end();) {
        Node* node = *it++;
        if (node->kind() == prim::unchecked_cast) remove_idle_cast(node);
    }
    for (auto it = jit.graph->nodes().begin(); it != jit.graph->nodes().end();) {
        Node* node = *it++;
        if (node->kind() == aten::append && is_unshared(node->input(0), node)) replace_append(*jit.graph, node);
    }
}

}  // namespace vpp
