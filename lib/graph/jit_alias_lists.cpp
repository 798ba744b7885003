#include "graph/jit_alias_lists.hpp"

#include <torch/library.h>

#include <algorithm>
#include <array>
#include <vector>

#include "graph/jit_alias.hpp"
#include "graph/jit_containers.hpp"

namespace vpp {

using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Use;
using torch::jit::Value;
namespace aten = torch::jit::aten;
namespace prim = torch::jit::prim;

namespace {

// Never run: a reader that keeps nothing of its list, and a view.
TORCH_LIBRARY_FRAGMENT(vpp, library) {
    library.def(torch::schema("vpp::read_list(Tensor[] list) -> ()", c10::AliasAnalysisKind::PURE_FUNCTION));
    library.def(torch::schema("vpp::read_list.optional(Tensor?[] list) -> ()", c10::AliasAnalysisKind::PURE_FUNCTION));
    library.def(torch::schema("vpp::view_part(Tensor(a) whole) -> Tensor(a)", c10::AliasAnalysisKind::FROM_SCHEMA));
}

bool is_list_of_tensors(const Value* value) {
    const auto list = value->type()->cast<c10::ListType>();
    if (!list) return false;
    const auto element = list->getElementType();
    const auto optional = element->cast<c10::OptionalType>();
    return is_tensor(optional ? *optional->getElementType() : *element);
}

/// Whether the op changes which elements some list or dict has: those of its argument may be among them then.
bool changes_container(const Node* node) {
    for (size_t i = 0; i < node->inputs().size(); ++i) {
        if (changes(node, i)) return true;
    }
    return false;
}

/// Whether the op neither writes its argument nor gives any of it on. The schemas of ops that make a list of other
/// lists' tensors, or put them into one (aten::extend), do not say so.
bool keeps_nothing(const Use& use) {
    const c10::FunctionSchema* schema = use.user->maybeSchema();
    if (!schema || use.offset >= schema->arguments().size() || schema->arguments()[use.offset].alias_info())
        return false;
    if (changes_container(use.user)) return false;
    return std::ranges::all_of(use.user->outputs(),
                               [](const Value* made) { return is_tensor(*made->type()) || is_plain(*made->type()); });
}

/// Whether the op takes tensors out of the list.
bool takes_out(const Use& use) {
    return use.offset == 0 && (use.user->kind() == prim::ListUnpack || use.user->kind() == aten::__getitem__);
}

/// The tensor of which the op lists views; null for other ops.
Value* viewed_by(const Node* node) {
    const c10::FunctionSchema* schema = node->maybeSchema();
    if (!schema || !node->kind().is_aten() || node->outputs().size() != 1 || !is_list_of_tensors(node->output())) {
        return nullptr;
    }
    Value* viewed = nullptr;
    for (size_t i = 0; i < schema->arguments().size(); ++i) {
        const c10::AliasInfo* alias = schema->arguments()[i].alias_info();
        if (!alias) continue;
        const Value* argument = node->input(i);
        if (viewed || alias->isWrite() || !is_tensor(*argument->type())) return nullptr;
        viewed = node->input(i);
    }
    return viewed;
}

/// The list of which the op lists a view of each element; null for other ops. Their schemas do not say so.
Node* viewed_one_by_one(const Node* node) {
    const std::array<c10::Symbol, 2> ops{aten::broadcast_tensors, aten::meshgrid};
    if (std::ranges::find(ops, node->kind()) == ops.end()) return nullptr;
    Node* list = node->input(0)->node();
    const auto takes_all = [&](const Use& use) {
        return use.user->kind() == prim::ListUnpack && use.user->outputs().size() == list->inputs().size();
    };
    const bool is_known = list->kind() == prim::ListConstruct && std::ranges::all_of(node->output()->uses(), takes_all);
    return is_known ? list : nullptr;
}

class Lists {
  public:
    Lists(torch::jit::Graph& graph, ValueTwins& twins) : graph_(graph) {
        for (auto& [original, twin] : twins) twin_of_.emplace(twin, &twin);
    }

    void tell(Block* block) {
        for (auto it = block->nodes().begin(); it != block->nodes().end();) {
            Node* node = *it++;  // stepped first: nodes are put in behind it
            for (Block* inner : node->blocks()) tell(inner);
            if (node->kind() == prim::ListConstruct && is_list_of_tensors(node->output())) {
                tell_readers(node);
            } else if (viewed_by(node)) {
                tell_views(node);
            } else if (Node* list = viewed_one_by_one(node)) {
                tell_views_of_each(node, list);
            }
        }
    }

  private:
    void tell_readers(Node* list) {
        if (list->inputs().empty() || !std::ranges::all_of(list->output()->uses(), keeps_nothing)) return;
        forget_uses(list);
        add_reader(list);
    }

    void tell_views(Node* views) {
        const auto uses = views->output()->uses();  // a copy: they change
        const auto is_known = [](const Use& use) { return takes_out(use) || keeps_nothing(use); };
        if (!std::ranges::all_of(uses, is_known)) return;
        Value* part = insert_view(views, viewed_by(views));
        for (const Use& use : uses) {
            if (!takes_out(use)) continue;
            for (Value* taken : use.user->outputs()) replace(taken, part);
        }
        stand_for(views, {part});
        views->replaceInputWith(viewed_by(views), insert_memory(graph_, "vpp::fresh_memory"));
    }

    void tell_views_of_each(Node* views, Node* list) {
        std::vector<Value*> parts;
        for (Value* viewed : list->inputs()) parts.push_back(insert_view(views, viewed));
        for (const Use& use : std::vector<Use>(views->output()->uses())) {
            for (size_t i = 0; i < parts.size(); ++i) replace(use.user->output(i), parts[i]);
        }
        stand_for(views, parts);
        forget_use({views, 0});
        tell_readers(list);
    }

    Value* insert_view(Node* place, Value* viewed) {
        Node* view = graph_.create(c10::Symbol::fromQualString("vpp::view_part"), {viewed}, 1)->insertAfter(place);
        view->output()->setType(c10::TensorType::get());
        return view->output();
    }

    /// A list of these parts stands for the one that the node makes.
    void stand_for(Node* views, const std::vector<Value*>& parts) {
        Node* list = graph_.createList(c10::TensorType::get(), parts);
        list->insertAfter(parts.empty() ? views : parts.front()->node());
        forget_uses(views);
        add_reader(list);
        replace(views->output(), list->output());
    }

    /// Ops that read a list get an empty one instead: what they read does not matter here.
    void forget_uses(Node* list) {
        for (const Use& use : std::vector<Use>(list->output()->uses())) forget_use(use);
    }

    void forget_use(const Use& use) {
        const auto element = use.user->input(use.offset)->type()->expectRef<c10::ListType>().getElementType();
        Node* empty = graph_.createList(element, {})->insertBefore(use.user);
        use.user->replaceInput(use.offset, empty->output());
    }

    /// LibTorch knows what a list holds that one pure function reads.
    void add_reader(Node* list) {
        graph_.create(c10::Symbol::fromQualString("vpp::read_list"), {list->output()}, 0)->insertAfter(list);
    }

    void replace(Value* from, Value* to) {
        from->replaceAllUsesWith(to);
        const auto twin = twin_of_.find(from);
        if (twin != twin_of_.end()) *twin->second = to;
    }

    torch::jit::Graph& graph_;
    std::unordered_map<const Value*, Value**> twin_of_;  ///< value of the copy -> the entry that names it
};

}  // namespace

void tell_lists(torch::jit::Graph& copy, ValueTwins& twins) {
    Lists(copy, twins).tell(copy.block());
}

}  // namespace vpp
