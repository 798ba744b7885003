// The op list, what an op uses and how it is named to people.
#include <algorithm>
#include <filesystem>

#include "base/error.hpp"
#include "graph/jit_graph.hpp"
#include "graph/stage_borders.hpp"

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

void collect_uses(Node* node, const Node* outer, std::vector<Value*>& used) {
    if (is_reseed(node)) return;
    auto add = [&](Value* value) {
        const bool constant = value->node()->kind() == torch::jit::prim::Constant;
        if (constant || is_defined_inside(value, outer)) return;
        if (std::find(used.begin(), used.end(), value) == used.end()) used.push_back(value);
    };
    for (Value* input : node->inputs()) add(input);
    for (Block* block : node->blocks()) {
        for (Node* inner : block->nodes()) collect_uses(inner, outer, used);
        for (Value* output : block->outputs()) add(output);
    }
}

/// " of the stage 'head' (head.pt)"; empty for one model.
std::string stage_text(const JitGraph& jit, const std::string& owner) {
    const int stage = stage_of_module(jit.stages, owner);
    if (stage < 0) return "";
    const StagePlan& plan = jit.stages[static_cast<size_t>(stage)];
    const std::string file = std::filesystem::path(plan.file).filename().string();
    return " of the stage '" + plan.name + "'" + (file.empty() ? "" : " (" + file + ")");
}

/// Gradients are those of the step: what a forward pass leaves or reads of them would depend on the schedule.
void refuse_stored_gradients(const JitGraph& jit, const Node* node) {
    const Node* found = find_op(node, {"aten::backward", "prim::grad"});
    if (!found) return;
    const char* does = found->kind() == c10::Symbol::fromQualString("prim::grad") ? " reads" : " adds to";
    throw Error(ErrorKind::BadData, op_text(jit, found) + does +
                                        " the .grad of tensors, which belongs to the step; torch.autograd.grad gives "
                                        "gradients as values");
}

/// Random ops are keyed one by one: what else a model does about its generators would have no effect, or one that
/// depends on the schedule.
void refuse_generators(const JitGraph& jit, Node* top) {
    for_each_node(top, [&](const Node* node) {
        const bool seeds = is_op(node, "aten::manual_seed") || is_op(node, "aten::seed");
        const bool uses = std::ranges::any_of(
            node->inputs(), [](const Value* value) { return value->type()->kind() == c10::TypeKind::GeneratorType; });
        if (!seeds && !uses) return;
        throw Error(ErrorKind::BadData, op_text(jit, node) +
                                            " seeds or uses a generator of random numbers; leave that out: what is "
                                            "random follows train.seed, the step and the microbatch");
    });
}

}  // namespace

bool is_op(const Node* node, const char* name) {
    return node->kind() == c10::Symbol::fromQualString(name);
}

const Value* argument_named(const Node* node, const char* name) {
    const c10::FunctionSchema* schema = node->maybeSchema();
    const auto place = schema ? schema->argumentIndexWithName(name) : std::nullopt;
    if (!place || static_cast<size_t>(*place) >= node->inputs().size()) return nullptr;
    return node->input(static_cast<size_t>(*place));
}

const Node* find_op(const Node* node, const std::set<std::string_view>& kinds) {
    if (kinds.contains(node->kind().toQualString())) return node;
    for (const Block* block : node->blocks()) {
        for (const Node* inner : block->nodes()) {
            if (const Node* found = find_op(inner, kinds)) return found;
        }
    }
    return nullptr;
}

bool takes_gradients(const Node* node) {
    return find_op(node, {"aten::grad"});
}

std::vector<Value*> values_used(Node* node) {
    std::vector<Value*> used;
    collect_uses(node, node, used);
    return used;
}

std::string line_text(const Node* node) {
    const auto place = source_line(node);
    const std::string file = place ? std::filesystem::path(place->file).filename().string() : "";
    return file.empty() ? "" : " at " + printable(file) + ":" + std::to_string(place->line);
}

std::string op_text(const JitGraph& jit, const Node* node) {
    const std::string owner = module_of(node);
    return std::string("the op ") + node->kind().toQualString() + " in " +
           (owner.empty() ? "the model's forward" : "'" + owner + "'") + stage_text(jit, owner) + line_text(node);
}

void list_ops(JitGraph& jit) {
    jit.ops.clear();
    for (Node* node : jit.graph->nodes()) {
        refuse_stored_gradients(jit, node);
        refuse_generators(jit, node);
        if (node->kind() == torch::jit::prim::Constant) continue;
        jit.ops.push_back({node, static_cast<int>(jit.ops.size())});
    }
}

}  // namespace vpp
