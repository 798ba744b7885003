// List elements that a branch sets: the branch gives them and they are set behind it, so that they can be followed.
#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>
#include <map>
#include <set>

#include "graph/jit_containers.hpp"
#include "graph/jit_graph.hpp"

namespace vpp {

using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Value;

namespace {

constexpr const char* kSetItem = "aten::_set_item";

std::optional<size_t> place_set(const Node* setting) {
    return place_in_list(setting->input(1), setting->input(0)->node()->inputs().size());
}

bool sets_known_place(const Node* node, const Value* list) {
    const bool sets = is_op(node, kSetItem) && node->input(0) == list;
    return sets && !node->output()->hasUses() && place_set(node).has_value();
}

/// Whether each change of the list sets an element at a known place, and no other name leads to it.
bool has_known_changes(const Value* list) {
    if (list->node()->kind() != torch::jit::prim::ListConstruct) return false;
    return std::ranges::all_of(list->uses(), [list](const torch::jit::Use& use) {
        return (use.offset == 0 && sets_known_place(use.user, list)) || only_reads(use.user, use.offset);
    });
}

/// One block of a branch: takes the settings of a list out of it. What looks at the list behind one gets a new list of
/// what is in it there; the list itself stays as it was before the branch.
class BlockLift {
  public:
    BlockLift(Block* block, Value* list) : block_(block), list_(list) {
        for (auto it = block->nodes().begin(); it != block->nodes().end();) {
            Node* node = *it++;
            if (sets_known_place(node, list)) {
                elements_[*place_set(node)] = node->input(2);
                snapshot_ = nullptr;
                node->destroy();
            } else if (!elements_.empty()) {
                show(node);
            }
        }
    }

    /// What the block sets, by place.
    const std::map<size_t, Value*>& elements() const { return elements_; }

    /// What is at the place when the block ends.
    Value* element_at_end(size_t place) {
        const torch::jit::WithInsertPoint here(block_);
        return element(place);
    }

  private:
    /// The element at a place, read where code is inserted if the block does not set it.
    Value* element(size_t place) {
        const auto set = elements_.find(place);
        if (set != elements_.end()) return set->second;
        return block_->owningGraph()->insert(torch::jit::aten::__getitem__, {list_, static_cast<int64_t>(place)});
    }

    Value* snapshot_before(Node* node) {
        if (snapshot_) return snapshot_;
        const torch::jit::WithInsertPoint here(node);
        std::vector<Value*> elements;
        for (size_t i = 0; i < list_->node()->inputs().size(); ++i) elements.push_back(element(i));
        return snapshot_ = make_list(node, elements, list_);
    }

    /// Gives a node of the block, and those inside it, what is in the list there.
    void show(Node* node) {
        for_each_node(node, [&](Node* reader) {
            for (size_t i = 0; i < reader->inputs().size(); ++i) {
                if (reader->input(i) == list_) reader->replaceInput(i, snapshot_before(node));
            }
        });
    }

    Block* block_;
    Value* list_;
    std::map<size_t, Value*> elements_;
    Value* snapshot_ = nullptr;  ///< since the last setting
};

void lift(Node* branch, Value* list) {
    std::vector<BlockLift> blocks;
    std::set<size_t> places;
    for (Block* block : branch->blocks()) {
        for (const auto& [place, element] : blocks.emplace_back(block, list).elements()) places.insert(place);
    }
    torch::jit::Graph& graph = *branch->owningGraph();
    const torch::jit::WithInsertPoint behind(branch->next());
    for (const size_t place : places) {
        for (size_t i = 0; i < blocks.size(); ++i) {
            branch->blocks()[i]->registerOutput(blocks[i].element_at_end(place));
        }
        Value* element = branch->addOutput()->setType(list->type()->expectRef<c10::ListType>().getElementType());
        Value* set = graph.insert(c10::Symbol::fromQualString(kSetItem), {list, static_cast<int64_t>(place), element});
        set_module(set->node(), module_of(branch));
    }
}

bool is_set_inside(Node* node, const Value* list) {
    return any_node(node, [list](const Node* inner) { return sets_known_place(inner, list); });
}

/// Whether all settings in the branch stand in its own blocks: none in a loop, which would see them of the time before.
bool is_set_straight_on(Node* branch, const Value* list) {
    for (Block* block : branch->blocks()) {
        for (Node* node : block->nodes()) {
            if (!node->blocks().empty() && is_set_inside(node, list)) return false;
        }
    }
    return true;
}

/// Lists made before the branch whose elements are set in it.
std::vector<Value*> lists_set_in(Node* branch) {
    std::vector<Value*> lists;
    for (Block* block : branch->blocks()) {
        for (Node* node : block->nodes()) {
            if (!is_op(node, kSetItem)) continue;
            Value* list = node->input(0);
            const bool is_new = std::ranges::find(lists, list) == lists.end();
            const bool is_made_before = list->node()->owningBlock() != block;
            if (is_new && is_made_before && has_known_changes(list) && is_set_straight_on(branch, list))
                lists.push_back(list);
        }
    }
    return lists;
}

}  // namespace

void lift_settings(Block* block) {
    for (Node* node : block->nodes()) {
        if (node->kind() != torch::jit::prim::If) continue;
        for (Block* inner : node->blocks()) lift_settings(inner);
        for (Value* list : lists_set_in(node)) lift(node, list);
    }
}

}  // namespace vpp
