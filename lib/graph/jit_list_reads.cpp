// What is asked of lists that stay as they were written down.
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/runtime/slice_indices_adjust.h>

#include <algorithm>
#include <array>
#include <limits>

#include "graph/jit_containers.hpp"
#include "graph/jit_contents.hpp"
#include "graph/jit_graph.hpp"

namespace vpp {

using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Use;
using torch::jit::Value;
namespace aten = torch::jit::aten;

namespace {

/// Whether no other name leads to the list.
bool stays_unnamed(const Value* list) {
    return std::ranges::all_of(list->uses(), [](const Use& use) { return only_reads(use.user, use.offset); });
}

/// A bound of a part as the function of LibTorch takes it: what is not given is the greatest number.
std::optional<int64_t> known_bound(const Value* bound) {
    const auto constant = torch::jit::toIValue(bound);
    if (!constant) return std::nullopt;
    return constant->isInt() ? constant->toInt() : std::numeric_limits<int64_t>::max();
}

/// The elements of `list[start:end:step]`, where that is known.
std::optional<std::vector<Value*>> elements_of_part(const Node* part, const std::vector<Value*>& elements) {
    auto start = known_bound(part->input(1)), end = known_bound(part->input(2));
    const auto step = torch::jit::toIValue(part->input(3));
    if (!start || !end || !step || step->toInt() == 0) return std::nullopt;
    const auto size = static_cast<int64_t>(elements.size());
    const int64_t count = torch::jit::slice_indices_adjust(size, &*start, &*end, step->toInt());
    std::vector<Value*> taken;
    for (int64_t i = 0; i < count; ++i) taken.push_back(elements.at(static_cast<size_t>(*start + i * step->toInt())));
    return taken;
}

bool asks(const Node* node) {
    const std::array<c10::Symbol, 4> kinds{aten::__getitem__, aten::len, aten::slice, torch::jit::prim::ListUnpack};
    return std::ranges::find(kinds, node->kind()) != kinds.end() && is_list(node->input(0));
}

/// What the op gives that asks a list of these elements, one for each output; nothing where that is not known.
std::vector<Value*> answers_of(Node* node, const std::vector<Value*>& elements) {
    if (node->kind() == torch::jit::prim::ListUnpack) {
        return node->outputs().size() == elements.size() ? elements : std::vector<Value*>{};
    }
    if (node->kind() == aten::__getitem__) {
        const auto place = place_in_list(node->input(1), elements.size());
        return place ? std::vector<Value*>{elements[*place]} : std::vector<Value*>{};
    }
    if (node->kind() == aten::len) {
        const torch::jit::WithInsertPoint here(node);
        return {node->owningGraph()->insertConstant(static_cast<int64_t>(elements.size()))};
    }
    const auto part = elements_of_part(node, elements);
    return part ? std::vector<Value*>{make_list(node, *part, node->output())} : std::vector<Value*>{};
}

/// Whether it could be answered what the op asks; it is gone then.
bool answer_read(Node* node, bool others_change) {
    Value* list = node->input(0);
    const auto elements = written_elements(list);
    if (!elements || (others_change && !stays_unnamed(list))) return false;
    const std::vector<Value*> answers = answers_of(node, *elements);
    if (answers.empty()) return false;
    for (size_t i = 0; i < answers.size(); ++i) node->output(i)->replaceAllUsesWith(answers[i]);
    node->destroy();
    return true;
}

}  // namespace

bool fold_list_reads(Block* block, bool others_change) {
    bool any = false;
    for (auto it = block->nodes().begin(); it != block->nodes().end();) {
        Node* node = *it++;
        for (Block* inner : node->blocks()) any = fold_list_reads(inner, others_change) || any;
        if (asks(node)) any = answer_read(node, others_change) || any;
    }
    return any;
}

}  // namespace vpp
