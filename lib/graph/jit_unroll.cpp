// Loops that run a known number of times: their ops, once for each time, are ops of the model as all others, so it can
// be cut between them (a block that is applied twelve times, a refinement in steps).
#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "graph/jit_graph.hpp"

namespace vpp {

using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Value;

namespace {

constexpr int64_t kMaxUnrolledNodes = 10'000;  ///< of a model; loops behind that stay

bool is_true(const Value* value) {
    const auto constant = torch::jit::toIValue(value);
    return constant && constant->isBool() && constant->toBool();
}

int64_t num_nodes(const Block* block) {
    int64_t nodes = 0;
    for (const Node* node : block->nodes()) {
        ++nodes;
        for (const Block* inner : node->blocks()) nodes += num_nodes(inner);
    }
    return nodes;
}

/// How often a loop runs, where that is known, no break ends it, and what it becomes has room.
std::optional<int64_t> known_count(const Node* node, int64_t room) {
    if (node->kind() != torch::jit::prim::Loop) return std::nullopt;
    const Block* body = node->blocks()[0];
    const auto count = torch::jit::toIValue(node->input(0));
    const bool is_for = is_true(node->input(1)) && is_true(body->outputs()[0]);
    if (!is_for || !count || !count->isInt()) return std::nullopt;
    const int64_t times = std::max<int64_t>(count->toInt(), 0);
    if (times > room / std::max<int64_t>(num_nodes(body), 1)) return std::nullopt;
    return times;
}

/// Puts copies of the body before the loop, each with what the one before it gives, and removes the loop.
void unroll(Node* loop, int64_t times) {
    torch::jit::Graph& graph = *loop->owningGraph();
    Block* body = loop->blocks()[0];
    const torch::jit::WithInsertPoint here(loop);
    std::vector<Value*> carried(loop->inputs().begin() + 2, loop->inputs().end());
    for (int64_t time = 0; time < times; ++time) {
        std::unordered_map<const Value*, Value*> twins{{body->inputs()[0], graph.insertConstant(time)}};
        for (size_t i = 0; i < carried.size(); ++i) twins[body->inputs()[i + 1]] = carried[i];
        const auto twin_of = [&twins](Value* value) {
            const auto twin = twins.find(value);
            return twin == twins.end() ? value : twin->second;
        };
        for (Node* node : body->nodes()) {
            Node* copy = graph.insertNode(graph.createClone(node, twin_of));
            for (size_t i = 0; i < node->outputs().size(); ++i) twins[node->output(i)] = copy->output(i);
        }
        for (size_t i = 0; i < carried.size(); ++i) carried[i] = twin_of(body->outputs()[i + 1]);
    }
    for (size_t i = 0; i < carried.size(); ++i) loop->output(i)->replaceAllUsesWith(carried[i]);
    loop->destroy();
}

/// Unrolls loops of the top level as long as there is room. Gives whether there was one.
bool unroll_all(JitGraph& jit) {
    bool any = false;
    for (auto it = jit.graph->nodes().begin(); it != jit.graph->nodes().end();) {
        Node* node = *it++;
        const auto times = known_count(node, kMaxUnrolledNodes - jit.num_unrolled);
        if (!times) continue;
        jit.num_unrolled += *times * num_nodes(node->blocks()[0]);
        unroll(node, *times);
        any = true;
    }
    return any;
}

}  // namespace

void unroll_loops(JitGraph& jit) {
    // How often a loop inside of another runs may follow from the other's count.
    while (unroll_all(jit)) fold_constants(jit);
}

}  // namespace vpp
