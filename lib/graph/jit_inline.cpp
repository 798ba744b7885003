// Inlining by hand. LibTorch's own pass keeps only the last attribute of a module chain; here every node gets the whole
// FQN, since each call is replaced while the FQN of its self value is known.
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>
#include <unordered_map>

#include "base/error.hpp"
#include "graph/jit_graph.hpp"

namespace vpp {

using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Value;
namespace prim = torch::jit::prim;
namespace attr = torch::jit::attr;

namespace {

using ModuleNames = std::unordered_map<const Value*, std::string>;

constexpr int kMaxCallDepth = 200;

bool is_module_value(const Value* value) {
    const auto type = value->type()->cast<c10::ClassType>();
    return type && type->is_module();
}

constexpr int64_t kMaxNodes = 4'000'000;

/// The function that a node calls; null where it calls none that has a graph.
torch::jit::GraphFunction* callee_of(const Node* node) {
    torch::jit::Function* function = nullptr;
    if (node->kind() == prim::CallMethod) {
        const auto type = node->input(0)->type()->cast<c10::ClassType>();
        if (type) function = type->findMethod(node->s(attr::name));
    } else if (node->kind() == prim::CallFunction) {
        function = node->input(0)->type()->expect<c10::FunctionType>()->function();
    }
    return function ? torch::jit::tryToGraphFunction(*function) : nullptr;
}

/// How many nodes there are when all calls are written out, found without doing it: calls of calls may come to more
/// than any memory holds.
class NodesWrittenOut {
  public:
    int64_t in(const Block* block, int depth = 0) {
        int64_t sum = 0;
        for (const Node* node : block->nodes()) {
            ++sum;
            for (const Block* inner : node->blocks()) sum += in(inner, depth);
            if (node->kind() == prim::fork) sum += in(node->g(attr::Subgraph)->block(), depth);
            if (torch::jit::GraphFunction* callee = callee_of(node)) sum += of(*callee, depth + 1);
            sum = std::min(sum, kMaxNodes + 1);
        }
        return sum;
    }

  private:
    int64_t of(torch::jit::GraphFunction& function, int depth) {
        if (depth > kMaxCallDepth) return 0;  // refused anyway
        const auto [known, is_new] = known_.try_emplace(&function, 0);
        if (!is_new) return known->second;
        const int64_t sum = in(function.graph()->block(), depth);
        return known_[&function] = sum;
    }

    std::unordered_map<const void*, int64_t> known_;
};

void check_size(const torch::jit::Graph& graph) {
    if (NodesWrittenOut().in(graph.block()) <= kMaxNodes) return;
    throw Error(ErrorKind::BadData,
                "the model's calls, written out, have more than " + std::to_string(kMaxNodes) + " nodes");
}

std::shared_ptr<torch::jit::Graph> inlined(const torch::jit::Module& model, torch::jit::Function& function,
                                           const std::string& self_fqn, int depth);

torch::jit::Module module_at(torch::jit::Module module, const std::string& fqn) {
    for (size_t begin = 0; begin < fqn.size();) {
        const size_t end = std::min(fqn.find('.', begin), fqn.size());
        module = module.attr(fqn.substr(begin, end - begin)).toModule();
        begin = end + 1;
    }
    return module;
}

/// The name of the submodule that is at a known place of a ModuleList, or under a known key of a ModuleDict.
std::optional<std::string> name_at(const torch::jit::Module& container, const std::optional<c10::IValue>& place) {
    std::vector<std::string> names;
    for (const auto& child : container.named_children()) names.push_back(child.name);
    if (place && place->isString() && std::ranges::count(names, place->toStringRef()) == 1) return place->toStringRef();
    if (!place || !place->isInt()) return std::nullopt;
    const auto size = static_cast<int64_t>(names.size());
    const int64_t i = place->toInt() < 0 ? place->toInt() + size : place->toInt();
    if (i < 0 || i >= size) return std::nullopt;
    return names[static_cast<size_t>(i)];
}

/// "Expert" of __torch__.model.Expert.
std::string type_name(const c10::Type& type) {
    const std::string name = type.annotation_str();
    return name.substr(name.rfind('.') + 1);
}

/// Whether an op was written in PyTorch's own Python files.
bool is_of_library(const Node* node) {
    const auto place = source_line(node);
    return place && place->file.find("/torch/nn/") != std::string::npos;
}

/// Gives an op of the library the line that called it, which says more.
void take_line(Node* node, const Node* call) {
    if (is_of_library(node)) node->setSourceRange(call->sourceRange());
    for (Block* block : node->blocks()) {
        for (Node* inner : block->nodes()) take_line(inner, call);
    }
}

/// Replaces a call by the callee's inlined graph.
void replace_call(Node* call, torch::jit::Graph& callee, at::ArrayRef<Value*> arguments) {
    const torch::jit::WithInsertPoint at_call(call);
    const Node* before = call->prev();
    const std::vector<Value*> results = torch::jit::insertGraph(*call->owningGraph(), callee, arguments);
    for (Node* node = call->prev(); node != before; node = node->prev()) take_line(node, call);
    for (size_t i = 0; i < results.size(); ++i) call->output(i)->replaceAllUsesWith(results[i]);
    call->destroy();
}

class Inliner {
  public:
    Inliner(const torch::jit::Module& model, std::string self_fqn, int depth)
        : model_(model), self_fqn_(std::move(self_fqn)), depth_(depth) {}

    /// The block of a function whose first input is self.
    void run(Block* block) {
        if (!block->inputs().empty() && is_module_value(block->inputs()[0])) names_[block->inputs()[0]] = self_fqn_;
        visit_all(block);
    }

  private:
    void visit_all(Block* block) {
        for (auto it = block->nodes().begin(); it != block->nodes().end();) {
            Node* node = *it++;  // stepped first: the node may be replaced
            visit(node);
        }
    }

    void visit(Node* node) {
        set_module(node, self_fqn_);
        for (Block* inner : node->blocks()) visit_all(inner);
        if (node->kind() == prim::GetAttr && names_.count(node->input(0))) {
            name_module(node);
        } else if (node->kind() == prim::ModuleContainerIndex && names_.count(node->input(0))) {
            choose_module(node);
        } else if (node->kind() == prim::CallMethod) {
            inline_method(node);
        } else if (node->kind() == prim::CallFunction) {
            inline_function(node);
        } else if (node->kind() == prim::fork) {
            inline_fork(node);
        } else if (node->kind() == torch::jit::aten::wait) {
            drop_wait(node);
        }
    }

    /// Where an interface stands in the code, the class is that of the module which the file has there.
    void name_module(Node* node) {
        const std::string& parent = names_.at(node->input(0));
        const std::string fqn = (parent.empty() ? "" : parent + ".") + node->s(attr::name);
        const bool is_interface = node->output()->type()->kind() == c10::TypeKind::InterfaceType;
        if (is_interface && node->output()->type()->is_module()) node->output()->setType(module_at(model_, fqn).type());
        if (is_module_value(node->output())) names_[node->output()] = fqn;
    }

    /// self.experts[1] as an interface.
    void choose_module(Node* node) {
        const auto place = torch::jit::toIValue(node->input(1));
        const std::optional<std::string> name = name_at(module_at(model_, names_.at(node->input(0))), place);
        if (!name) return;
        const torch::jit::WithInsertPoint here(node);
        Value* module = node->owningGraph()->insertGetAttr(node->input(0), *name);
        visit(module->node());
        node->output()->replaceAllUsesWith(module);
        node->destroy();
    }

    void inline_method(Node* node) {
        const auto type = node->input(0)->type()->cast<c10::ClassType>();
        if (!type) {
            throw Error(ErrorKind::BadData,
                        "the model calls '" + node->s(attr::name) + "' through the interface " +
                            type_name(*node->input(0)->type()) + line_text(node) +
                            ", where the data may choose the module, so no stage could have it; call each under an if "
                            "of its own: for i, m in enumerate(self.experts): if i == k: y = m(x)");
        }
        const auto named = names_.find(node->input(0));
        const std::string fqn = named == names_.end() ? self_fqn_ : named->second;
        const auto callee = inlined(model_, type->getMethod(node->s(attr::name)), fqn, depth_ + 1);
        replace_call(node, *callee, node->inputs());
    }

    void inline_function(Node* node) {
        const auto type = node->input(0)->type()->expect<c10::FunctionType>();
        if (!torch::jit::tryToGraphFunction(*type->function())) return;  // a builtin
        const auto callee = inlined(model_, *type->function(), self_fqn_, depth_ + 1);
        replace_call(node, *callee, node->inputs().slice(1));
    }

    /// torch.jit.fork is a call whose result may come later; Python runs it where it stands.
    void inline_fork(Node* node) {
        const std::shared_ptr<torch::jit::Graph> body = node->g(attr::Subgraph)->copy();
        Inliner inner(model_, self_fqn_, depth_ + 1);
        for (size_t i = 0; i < node->inputs().size(); ++i) {
            const auto named = names_.find(node->input(i));
            if (named != names_.end()) inner.names_[body->inputs()[i]] = named->second;
        }
        inner.visit_all(body->block());
        replace_call(node, *body, node->inputs());
    }

    /// What it waits for is there, in place of the future.
    static void drop_wait(Node* node) {
        if (node->input()->type()->kind() == c10::TypeKind::FutureType) {
            throw Error(ErrorKind::BadData,
                        "forward keeps what torch.jit.fork gives in a list, a branch or a loop, which "
                        "is not supported; call torch.jit.wait on it directly");
        }
        node->output()->replaceAllUsesWith(node->input());
        node->destroy();
    }

    const torch::jit::Module& model_;
    std::string self_fqn_;
    int depth_;
    ModuleNames names_;
};

std::shared_ptr<torch::jit::Graph> inlined(const torch::jit::Module& model, torch::jit::Function& function,
                                           const std::string& self_fqn, int depth) {
    if (depth > kMaxCallDepth) throw Error(ErrorKind::BadData, "the model's calls are nested deeper than 200");
    auto* graph_function = torch::jit::tryToGraphFunction(function);
    if (!graph_function) throw Error(ErrorKind::BadData, "the method '" + function.name() + "' has no graph");
    std::shared_ptr<torch::jit::Graph> graph = graph_function->graph()->copy();
    Inliner(model, self_fqn, depth).run(graph->block());
    return graph;
}

}  // namespace

std::string module_of(const Node* node) {
    const auto scope = const_cast<Node*>(node)->scope();  // LibTorch has no const form
    return scope && !scope->isRoot() && !scope->isBlank() ? scope->name().toUnqualString() : "";
}

std::string value_name(const std::string& name) {
    return name.find_first_not_of("0123456789") == std::string::npos ? "" : name;
}

std::optional<SourceLine> source_line(const Node* node) {
    const torch::jit::SourceRange range = node->sourceRange();
    const auto place = range.findSourceRangeThatGenerated().value_or(range).file_line_col();
    if (!place) return std::nullopt;
    return SourceLine{std::get<0>(*place), std::get<1>(*place)};
}

void set_module(Node* node, const std::string& fqn) {
    const auto root = c10::make_intrusive<torch::jit::Scope>();
    node->setScope(fqn.empty() ? root : root->push(c10::Symbol::scope(fqn)));
}

std::shared_ptr<torch::jit::Graph> inline_with_labels(const torch::jit::Module& model) {
    const auto forward = model.find_method("forward");
    if (!forward) throw Error(ErrorKind::BadData, "the model file has " + no_forward_text(model));
    refuse_hooks(model, "the model");
    if (const auto* written = torch::jit::tryToGraphFunction(forward->function())) check_size(*written->graph());
    return inlined(model, forward->function(), "", 0);
}

std::string no_forward_text(const torch::jit::Module& module) {
    const std::string text = "no method 'forward'";
    if (!module.find_method("forward__0")) return text;
    return text +
           " but one for each kind of argument, as nn.LSTM and nn.GRU have; wrap it in a module whose forward "
           "calls it";
}

void refuse_hooks(const torch::jit::Module& module, const std::string& what) {
    const auto type = module.type();
    if (type->getForwardHooks().empty() && type->getForwardPreHooks().empty()) return;
    const torch::jit::Function* hook =
        type->getForwardPreHooks().empty() ? type->getForwardHooks().front() : type->getForwardPreHooks().front();
    throw Error(ErrorKind::BadData, what + " has a hook of its own around forward ('" + hook->name() +
                                        "'), which is not supported; put what it does into forward");
}

void inline_calls(torch::jit::Graph& graph, const torch::jit::Module& model) {
    check_size(graph);
    Inliner(model, "", 0).run(graph.block());
}

}  // namespace vpp
