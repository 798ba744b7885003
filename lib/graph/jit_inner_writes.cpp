#include "graph/jit_inner_writes.hpp"

#include <unordered_set>

#include "graph/jit_alias.hpp"

namespace vpp {

using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Value;
namespace prim = torch::jit::prim;

namespace {

class InnerWrites {
  public:
    explicit InnerWrites(const Node* node) : outer_(node) {
        for (const Block* block : node->blocks()) look_into(block);
    }

    std::vector<const Value*> take() { return std::move(found_); }

  private:
    void look_into(const Block* block) {
        for (const Node* node : block->nodes()) {
            for (const Value* written : inputs_written(node)) add(written);
            while (!open_.empty()) {
                const Value* value = open_.back();
                open_.pop_back();
                add_sources(value);
            }
            for (const Block* inner : node->blocks()) look_into(inner);
        }
    }

    /// What it may share memory with comes later where it was made inside.
    void add(const Value* value) {
        if (is_plain(*value->type()) || !seen_.insert(value).second) return;
        (is_inside(value) ? open_ : found_).push_back(value);
    }

    bool is_inside(const Value* value) const {
        const Node* node = value->node();
        while (node && node != outer_) node = node->owningBlock()->owningNode();
        return node && value->node() != outer_;
    }

    void add_sources(const Value* value) {
        const Node* node = value->node();
        const size_t place = value->offset();
        if (node->kind() == prim::Param) {
            const Block* block = node->owningBlock();
            add(block->owningNode()->input(place + 1));  // a loop's: its first parameter counts the rounds
            add(block->outputs()[place]);
            return;
        }
        const bool is_loop = node->kind() == prim::Loop;
        for (const Block* block : node->blocks()) add(block->outputs()[place + (is_loop ? 1 : 0)]);
        if (is_loop) add(node->input(place + 2));
        if (!node->blocks().empty() || makes_fresh_memory(node)) return;
        for (const Value* input : node->inputs()) add(input);
    }

    const Node* outer_;
    std::vector<const Value*> open_, found_;
    std::unordered_set<const Value*> seen_;
};

}  // namespace

std::vector<const Value*> outer_values_written(const Node* node) {
    return InnerWrites(node).take();
}

}  // namespace vpp
