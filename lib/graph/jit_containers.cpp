// Lists and dicts that are changed: where the code goes straight on, what they hold is known at each place, so a read
// gets the element itself or a new container of what is in it there, and no value changes after it was made. It can
// live across a cut then.
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/passes/constant_propagation.h>

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_set>

#include "graph/jit_containers.hpp"
#include "graph/jit_contents.hpp"
#include "graph/jit_graph.hpp"

namespace vpp {

using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Value;
namespace aten = torch::jit::aten;
namespace prim = torch::jit::prim;

namespace {

const c10::AliasInfo* alias_of(const Node* node, size_t input) {
    const c10::FunctionSchema* schema = node->maybeSchema();
    if (!schema || input >= schema->arguments().size()) return nullptr;
    return schema->arguments()[input].alias_info();
}

/// Whether nobody else holds what the op gives.
bool makes_container(const Node* node) {
    const std::array<c10::Symbol, 5> makers{prim::ListConstruct, prim::DictConstruct, aten::list, aten::dict,
                                            aten::add};
    return std::ranges::find(makers, node->kind()) != makers.end() || is_op(node, "aten::copy");
}

/// One list or dict, from the op that makes it to the last use, or to the op from which on it stays as it is.
class Settler {
  public:
    Settler(torch::jit::Graph& graph, Node* maker, bool others_change)
        : graph_(graph), container_(maker->output()), others_change_(others_change), contents_(maker, others_change) {}

    /// Whether something changed.
    bool run() {
        if (contents_.has_unknown_keys()) return false;
        std::vector<Node*> users = users_in_order();
        const auto end = users.begin() + static_cast<std::ptrdiff_t>(num_followed(users));
        const auto is_change = [this](Node* user) { return is_followed_change(user); };
        if (std::none_of(users.begin(), end, is_change)) return false;
        for (auto user = users.begin(); user != end; ++user) follow(*user);
        if (end != users.end()) stay_from(*end);
        while (!done_.empty()) {
            done_.back()->destroy();
            done_.pop_back();
        }
        return true;
    }

  private:
    bool is_name(const Value* value) const { return names_.contains(value); }

    bool is_given_out(const Node* node) const {
        return std::ranges::any_of(node->blocks(), [this](const Block* block) {
            return std::ranges::any_of(block->outputs(), [this](const Value* v) { return is_name(v); });
        });
    }

    bool uses(const Node* node) const {
        return any_node(node, [this](const Node* inner) {
            return std::ranges::any_of(inner->inputs(), [this](const Value* v) { return is_name(v); }) ||
                   is_given_out(inner);
        });
    }

    /// Ops of its block that use the container under any of its names, or have an op inside that does.
    std::vector<Node*> users_in_order() {
        names_ = {container_};
        std::vector<Node*> users;
        const Node* end = container_->node()->owningBlock()->return_node();
        for (Node* node = container_->node()->next(); node; node = node->next()) {
            if (uses(node)) {
                users.push_back(node);
                const bool gives_itself = is_followed_change(node) && !is_pop(node) && !node->outputs().empty();
                if (gives_itself) names_.insert(node->output());
            }
            if (node == end) break;
        }
        return users;
    }

    /// A change of its block of which it is known what it does.
    bool is_followed_change(Node* node) const {
        if (node->inputs().empty() || !is_name(node->input(0))) return false;
        const auto is_other = [this](const Value* input) { return is_name(input); };
        if (std::any_of(node->inputs().begin() + 1, node->inputs().end(), is_other)) return false;
        return contents_.understands(node);
    }

    /// How many of the users are followed: up to a change that is not understood, and where somebody holds the
    /// container itself and it, or what holds it, is changed later, up to that.
    size_t num_followed(const std::vector<Node*>& users) const {
        std::optional<size_t> held;
        ContainerContents contents = contents_;
        for (size_t i = 0; i < users.size(); ++i) {
            const bool is_change = is_followed_change(users[i]);
            const bool followed = is_change && contents.follow(users[i]);
            if (!followed && may_change(users[i])) return held.value_or(i);
            if (followed && held) return *held;
            if (!followed && !held && holds(users[i])) held = i;
        }
        return others_change_ ? held.value_or(users.size()) : users.size();
    }

    /// Whether the op or one inside of it changes the container, or a block gets it under another name.
    bool may_change(const Node* node) const {
        return any_node(node, [this](const Node* inner) {
            return any_use(inner, [&](size_t i) { return changes(inner, i) || !inner->blocks().empty(); });
        });
    }

    bool holds(const Node* node) const {
        return any_node(node, [this](const Node* inner) {
            return any_use(inner, [&](size_t i) { return !only_reads(inner, i); }) || is_given_out(inner);
        });
    }

    /// Whether that holds for some input that is the container.
    template <typename Holds>
    bool any_use(const Node* node, const Holds& holds) const {
        for (size_t i = 0; i < node->inputs().size(); ++i) {
            if (is_name(node->input(i)) && holds(i)) return true;
        }
        return false;
    }

    void follow(Node* user) {
        if (is_followed_change(user)) {
            change(user);
            return;
        }
        for_each_node(user, [&](Node* node) {
            if (is_name_read(node) && replace_read(node)) {
                done_.push_back(node);
                return;
            }
            for (size_t i = 0; i < node->inputs().size(); ++i) {
                if (is_name(node->input(i))) node->replaceInput(i, snapshot_before(user));
            }
            for (Block* block : node->blocks()) {
                for (size_t i = 0; i < block->outputs().size(); ++i) {
                    if (is_name(block->outputs()[i])) block->replaceOutput(i, snapshot_before(user));
                }
            }
        });
    }

    void change(Node* node) {
        snapshot_ = nullptr;
        done_.push_back(node);
        if (is_pop(node)) node->output()->replaceAllUsesWith(contents_.taken_by(node));
        contents_.follow(node);
    }

    bool is_name_read(const Node* node) const { return !node->inputs().empty() && is_name(node->input(0)); }

    /// Puts an element, or a number, in the place of a read where that is known.
    bool replace_read(Node* node) {
        if (node->kind() == aten::__getitem__) {
            const auto place = contents_.place_of(node->input(1));
            if (place) node->output()->replaceAllUsesWith(contents_.values()[*place]);
            return place.has_value();
        }
        const torch::jit::WithInsertPoint here(node);
        if (node->kind() == aten::len) {
            const auto size = static_cast<int64_t>(contents_.values().size());
            node->output()->replaceAllUsesWith(graph_.insertConstant(size));
            return true;
        }
        if (is_op(node, "aten::__contains__") && !is_list(container_) && word_of(node->input(1)).has_value()) {
            node->output()->replaceAllUsesWith(graph_.insertConstant(contents_.place_of(node->input(1)).has_value()));
            return true;
        }
        return false;
    }

    /// A new container of what is in it there; made in its block, so that ops inside of others see it.
    Value* snapshot_before(Node* user) {
        if (snapshot_) return snapshot_;
        const torch::jit::WithInsertPoint here(user);
        Node* node = graph_.create(is_list(container_) ? prim::ListConstruct : prim::DictConstruct);
        for (size_t i = 0; i < contents_.values().size(); ++i) {
            if (!contents_.keys().empty()) node->addInput(contents_.keys()[i]);
            node->addInput(contents_.values()[i]);
        }
        node->output()->setType(container_->type());
        set_module(graph_.insertNode(node), module_of(user));
        return snapshot_ = node->output();
    }

    /// From this op on there is one container again, which changes in place.
    void stay_from(Node* user) {
        Value* container = snapshot_before(user);
        container_->replaceAllUsesAfterNodeWith(container->node(), container);
        for (Node* change : done_) {
            if (!is_followed_change(change)) continue;
            for (Value* name : change->outputs()) name->replaceAllUsesAfterNodeWith(container->node(), container);
        }
    }

    torch::jit::Graph& graph_;
    Value* container_;
    bool others_change_;
    ContainerContents contents_;
    std::unordered_set<const Value*> names_;  ///< the container, and what ops that change it give back
    std::vector<Node*> done_;                 ///< changes that were followed, and reads that are not needed any more
    Value* snapshot_ = nullptr;               ///< since the last change
};

/// A cast to the type that a list has already gives it a second name.
void remove_idle_cast(Node* cast) {
    const bool idle = is_list(cast->output()) && *cast->input()->type() == *cast->output()->type();
    if (!idle) return;
    cast->output()->replaceAllUsesWith(cast->input());
    cast->destroy();
}

/// What `held += more` gives is the list itself, which LibTorch's schema does not say.
void remove_name_of_sum(Node* sum) {
    if (sum->kind() == aten::add_ && is_list(sum->output())) sum->output()->replaceAllUsesWith(sum->input(0));
}

/// Answers what is asked of containers that are attributes: `name in self.layers`. Gives whether something was.
bool fold_reads_of_attributes(Block* block) {
    bool any = false;
    for (Node* node : block->nodes()) {
        for (Block* inner : node->blocks()) any = fold_reads_of_attributes(inner) || any;
        const bool asks =
            node->kind() == aten::__getitem__ || node->kind() == aten::len || is_op(node, "aten::__contains__");
        if (!asks || !is_container(node->input(0)) || is_changed(node->input(0))) continue;
        const auto answer = torch::jit::runNodeIfInputsAreConstant(node);
        const bool is_plain_answer = answer && (answer->front().isScalar() || answer->front().isString());
        if (!is_plain_answer) continue;
        const torch::jit::WithInsertPoint here(node);
        node->output()->replaceAllUsesWith(node->owningGraph()->insertConstant(answer->front()));
        any = true;
    }
    return any;
}

/// Whether some op changes a list or dict that came out of another container, an object, or a block.
bool changes_unknown_ones(const torch::jit::Graph& graph) {
    const auto changes_unknown = [](const Node* node) {
        for (size_t i = 0; i < node->inputs().size(); ++i) {
            if (!changes(node, i)) continue;
            const Node* maker = node->input(i)->node();
            while (maker->kind() == aten::append || maker->kind() == aten::add_) maker = maker->input(0)->node();
            if (!makes_container(maker)) return true;
        }
        return false;
    };
    for (const Node* node : graph.nodes()) {
        if (any_node(node, changes_unknown)) return true;
    }
    return false;
}

/// The elements of a list that stays as it is, where that is known and they are no tensors.
std::optional<std::vector<c10::IValue>> plain_elements(const Value* list) {
    const auto constant = torch::jit::toIValue(list);
    if (!constant || !constant->isList()) return std::nullopt;
    std::vector<c10::IValue> elements = constant->toListRef().vec();
    const auto is_plain = [](const c10::IValue& element) { return element.isScalar() || element.isString(); };
    if (!std::ranges::all_of(elements, is_plain)) return std::nullopt;
    return elements;
}

/// Makes the copy of a list that is an attribute of its elements: `sizes = self.sizes.copy()`.
void make_of_elements(Node* copy) {
    const bool is_copy = is_op(copy, "aten::copy") || copy->kind() == aten::list;
    if (!is_copy || !is_list(copy->input(0)) || !is_changed(copy->output())) return;
    const auto elements = plain_elements(copy->input(0));
    if (!elements) return;
    const torch::jit::WithInsertPoint here(copy);
    std::vector<Value*> values;
    for (const c10::IValue& element : *elements) values.push_back(copy->owningGraph()->insertConstant(element));
    copy->output()->replaceAllUsesWith(make_list(copy, values, copy->output()));
    copy->destroy();
}

/// What a list holds that an op makes of two others: `[x, y] + children`.
std::optional<std::vector<Value*>> elements_of_sum(Node* node) {
    if (node->kind() != aten::add || !is_list(node->output())) return std::nullopt;
    auto elements = written_elements(node->input(0));
    const auto others = written_elements(node->input(1));
    if (!elements || !others || elements->size() + others->size() > kMostElements) return std::nullopt;
    elements->insert(elements->end(), others->begin(), others->end());
    return elements;
}

/// Makes a sum of lists one that is written down. Gives the node that makes the list.
Node* write_down_sum(Node* sum) {
    const auto elements = elements_of_sum(sum);
    if (!elements) return sum;
    Value* list = make_list(sum, *elements, sum->output());
    sum->output()->replaceAllUsesWith(list);
    sum->destroy();
    return list->node();
}

/// Whether something changed: another list may be known then that takes the elements of this one.
bool settle_block(torch::jit::Graph& graph, Block* block, bool others_change) {
    bool any = false;
    for (Node* node = *block->nodes().begin(); node != block->return_node(); node = node->next()) {
        for (Block* inner : node->blocks()) any = settle_block(graph, inner, others_change) || any;
        Node* maker = others_change ? node : write_down_sum(node);
        any = any || maker != node;
        node = maker;
        const bool is_empty = node->kind() == aten::dict && node->inputs().empty();
        const bool known = node->kind() == prim::ListConstruct || node->kind() == prim::DictConstruct || is_empty;
        if (known && is_changed(node->output())) any = Settler(graph, node, others_change).run() || any;
    }
    return any;
}

bool settle_once(torch::jit::Graph& graph) {
    const bool others_change = changes_unknown_ones(graph);
    const bool any = fold_list_reads(graph.block(), others_change);
    return settle_block(graph, graph.block(), others_change) || any;
}

}  // namespace

bool is_list(const Value* value) {
    return value->type()->kind() == c10::TypeKind::ListType;
}

bool is_container(const Value* value) {
    return is_list(value) || value->type()->kind() == c10::TypeKind::DictType;
}

bool writes_input(const Node* node, size_t input) {
    const c10::AliasInfo* alias = alias_of(node, input);
    return alias && alias->isWrite();
}

bool changes(const Node* node, size_t input) {
    return is_container(node->input(input)) && writes_input(node, input);
}

bool is_changed(const Value* container) {
    return std::ranges::any_of(container->uses(),
                               [](const torch::jit::Use& use) { return changes(use.user, use.offset); });
}

bool only_reads(const Node* node, size_t input) {
    const std::array<c10::Symbol, 2> readers{aten::__getitem__, prim::ListUnpack};
    if (std::ranges::find(readers, node->kind()) != readers.end()) return true;
    const c10::FunctionSchema* schema = node->maybeSchema();
    return schema && input < schema->arguments().size() && !alias_of(node, input);
}

std::optional<size_t> place_in_list(const Value* index, size_t size) {
    const auto constant = torch::jit::toIValue(index);
    if (!constant || !constant->isInt()) return std::nullopt;
    const int64_t place = constant->toInt() + (constant->toInt() < 0 ? static_cast<int64_t>(size) : 0);
    if (place < 0 || place >= static_cast<int64_t>(size)) return std::nullopt;
    return static_cast<size_t>(place);
}

Value* make_list(Node* before, const std::vector<Value*>& elements, const Value* like) {
    Node* list = before->owningGraph()->create(prim::ListConstruct, elements);
    list->output()->setType(like->type());
    set_module(list->insertBefore(before), module_of(before));
    return list->output();
}

bool settle_containers(JitGraph& jit) {
    for (auto it = jit.graph->nodes().begin(); it != jit.graph->nodes().end();) {
        Node* node = *it++;
        for_each_node(node, remove_name_of_sum);
        if (node->kind() == prim::unchecked_cast) {
            remove_idle_cast(node);
        } else {
            make_of_elements(node);
        }
    }
    lift_settings(jit.graph->block());
    const bool answered = fold_reads_of_attributes(jit.graph->block());
    if (answered) fold_constants(jit);
    bool settled = false;
    while (settle_once(*jit.graph)) settled = true;
    if (settled) fold_constants(jit);
    return answered || settled;
}

}  // namespace vpp
