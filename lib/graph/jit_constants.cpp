// Constants: what depends on nothing else is evaluated, and no two ops give on the same tensor.
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/passes/constant_propagation.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>
#include <torch/csrc/jit/passes/lower_tuples.h>

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_set>

#include "base/error.hpp"
#include "graph/jit_alias.hpp"
#include "graph/jit_containers.hpp"
#include "graph/jit_graph.hpp"

namespace vpp {

namespace {

bool is_tensor_constant(const torch::jit::Value* value) {
    const auto constant = torch::jit::toIValue(value);
    return constant && constant->isTensor() && constant->toTensor().defined();
}

/// The first node in `node`, itself included, that may write memory of the constant; null where there is none.
const torch::jit::Node* writer_of(torch::jit::Node* node, const torch::jit::Value* constant,
                                  const AliasFacts& aliases) {
    const torch::jit::Node* writer = nullptr;
    for_each_node(node, [&](const torch::jit::Node* inner) {
        if (!writer && inner->blocks().empty() && aliases.may_write(inner, constant)) writer = inner;
    });
    return writer;
}

bool may_be_none(const c10::Type& type) {
    return c10::NoneType::get()->isSubtypeOf(type);
}

/// What `value is other`, or `is not`, gives, where they are one tensor or container, or one is None and the other's
/// type says it.
std::optional<bool> is_or_is_not(const torch::jit::Node* node) {
    namespace aten = torch::jit::aten;
    const bool is = node->kind() == aten::__is__, is_not = node->kind() == aten::__isnot__;
    if (!is && !is_not) return std::nullopt;
    if (node->input(0) == node->input(1) && !is_plain(*node->input(0)->type())) return is;
    const size_t none = node->input(0)->mustBeNone() ? 0 : 1;
    if (!node->input(none)->mustBeNone() || may_be_none(*node->input(1 - none)->type())) return std::nullopt;
    return is_not;
}

/// Whether all values of the type are of no narrower one when they are asked.
bool is_narrowest(const c10::Type& type) {
    const std::array<c10::TypeKind, 5> plain{c10::TypeKind::TensorType, c10::TypeKind::IntType,
                                             c10::TypeKind::FloatType, c10::TypeKind::BoolType,
                                             c10::TypeKind::StringType};
    if (const auto list = type.cast<c10::ListType>()) return is_narrowest(*list->getElementType());
    return std::ranges::find(plain, type.kind()) != plain.end();
}

/// What `isinstance(value, types)` gives, where the type of the value says it.
std::optional<bool> is_instance(const torch::jit::Node* node) {
    const c10::Type& type = *node->input()->type();
    if (!is_narrowest(type)) return std::nullopt;
    return std::ranges::any_of(node->tys(torch::jit::attr::types),
                               [&](const c10::TypePtr& one) { return type.isSubtypeOf(*one); });
}

/// Marks a node that is there so that a write is not taken for dead.
c10::Symbol keeper_mark() {
    return c10::Symbol::attr("keeps_a_write");
}

/// Whether something may hold the list or dict. One that nothing holds is its own, and may go with its changes.
bool is_held(const torch::jit::Value* container) {
    return std::ranges::any_of(container->uses(),
                               [](const torch::jit::Use& use) { return use.offset > 0 || !use.user->maybeSchema(); });
}

/// LibTorch (2.11) takes a write for dead where what it writes is read only out of a list, dict or tuple. Printing is
/// never dead, and so is no write of what is printed.
void keep_writes(torch::jit::Block* block) {
    for (auto it = block->nodes().begin(); it != block->nodes().end();) {
        torch::jit::Node* node = *it++;
        for (torch::jit::Block* inner : node->blocks()) keep_writes(inner);
        for (size_t i = 0; i < node->inputs().size(); ++i) {
            torch::jit::Value* written = node->input(i);
            if (!writes_input(node, i) || (!is_tensor(*written->type()) && !is_held(written))) continue;
            torch::jit::Node* keeper = node->owningGraph()->create(torch::jit::prim::Print, {written}, 0);
            keeper->i_(keeper_mark(), 1);
            keeper->insertAfter(node);
        }
    }
}

void remove_keepers(torch::jit::Block* block) {
    for (auto it = block->nodes().begin(); it != block->nodes().end();) {
        torch::jit::Node* node = *it++;
        for (torch::jit::Block* inner : node->blocks()) remove_keepers(inner);
        if (node->hasAttribute(keeper_mark())) node->destroy();
    }
}

/// What the op makes of texts and numbers that are known, f"aux{i}"; LibTorch's own pass (2.11) leaves out ops that
/// take any number of inputs.
std::optional<c10::IValue> text_of(const torch::jit::Node* node) {
    if (!is_op(node, "aten::format") && !is_op(node, "aten::percentFormat")) return std::nullopt;
    torch::jit::Stack stack;
    for (const torch::jit::Value* input : node->inputs()) {
        const auto constant = torch::jit::toIValue(input);
        if (!constant || !(constant->isString() || constant->isScalar())) return std::nullopt;
        stack.push_back(*constant);
    }
    stack.emplace_back(static_cast<int64_t>(node->inputs().size()));
    try {
        node->getOperation()(stack);
    } catch (const std::exception&) {
        return std::nullopt;  // it fails when it runs
    }
    return stack.size() == 1 && stack[0].isString() ? std::optional(stack[0]) : std::nullopt;
}

/// What `is` or `isinstance` gives, where that is known.
std::optional<c10::IValue> answer_of(const torch::jit::Node* node) {
    const auto answer = node->kind() == torch::jit::prim::isinstance ? is_instance(node) : is_or_is_not(node);
    return answer ? std::optional<c10::IValue>(*answer) : std::nullopt;
}

using Known = std::optional<c10::IValue>(const torch::jit::Node*);

/// Puts constants in the place of what is known. Gives whether there was something.
bool fold(torch::jit::Block* block, Known* known) {
    bool any = false;
    for (auto it = block->nodes().begin(); it != block->nodes().end();) {
        torch::jit::Node* node = *it++;
        for (torch::jit::Block* inner : node->blocks()) any = fold(inner, known) || any;
        const std::optional<c10::IValue> value = known(node);
        if (!value) continue;
        const torch::jit::WithInsertPoint before(node);
        node->output()->replaceAllUsesWith(node->owningGraph()->insertConstant(*value));
        node->destroy();
        any = true;
    }
    return any;
}

}  // namespace

bool fold_type_checks(torch::jit::Block* block) {
    return fold(block, answer_of);
}

void bind_default(torch::jit::Graph& graph, size_t index, const c10::IValue& value) {
    const torch::jit::WithInsertPoint at_start(*graph.nodes().begin());
    graph.inputs()[index]->replaceAllUsesWith(graph.insertConstant(value));
    graph.eraseInput(index);
}

void fold_constants(JitGraph& jit) {
    keep_writes(jit.graph->block());
    torch::jit::ConstantPropagationImmutableTypes(jit.graph);
    while (fold(jit.graph->block(), text_of)) torch::jit::ConstantPropagationImmutableTypes(jit.graph);
    torch::jit::LowerSimpleTuples(jit.graph);
    torch::jit::EliminateDeadCode(jit.graph);
    remove_keepers(jit.graph->block());
}

void separate_constants(JitGraph& jit) {
    std::unordered_set<const void*> taken;
    for (const JitOp& op : jit.ops) {
        for (size_t i = 0; i < op.node->inputs().size(); ++i) {
            if (!is_tensor_constant(op.node->input(i))) continue;
            const at::Tensor tensor = torch::jit::toIValue(op.node->input(i))->toTensor();
            if (taken.insert(tensor.unsafeGetTensorImpl()).second) continue;
            const torch::jit::WithInsertPoint before(op.node);
            op.node->replaceInput(i, jit.graph->insertConstant(tensor.detach()));
        }
    }
}

void check_constants(const JitGraph& jit, const AliasFacts& aliases) {
    for (torch::jit::Node* top : jit.graph->nodes()) {
        for_each_node(top, [&](const torch::jit::Node* constant) {
            if (constant->kind() != torch::jit::prim::Constant || !is_tensor_constant(constant->output())) return;
            if (!aliases.has_writers(constant->output())) return;
            for (const JitOp& op : jit.ops) {
                const torch::jit::Node* writer = writer_of(op.node, constant->output(), aliases);
                if (!writer) continue;
                throw Error(ErrorKind::BadData, op_text(jit, writer) +
                                                    " writes to a constant, which is in no checkpoint and may "
                                                    "be on other ranks too; make it a buffer (register_buffer)");
            }
        });
    }
}

}  // namespace vpp
