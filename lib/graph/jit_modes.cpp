// The modes of ops. A guard's object lives on the interpreter's stack and cannot cross a cut; which modes hold is known
// before anything runs, since ranges nest and what is asked for are constants.
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/library.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "base/error.hpp"
#include "graph/autocast.hpp"
#include "graph/card_autocast.hpp"
#include "graph/jit_graph.hpp"

namespace vpp {

using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Value;
namespace prim = torch::jit::prim;
namespace attr = torch::jit::attr;

namespace {

void set_modes(bool grad, std::optional<at::ScalarType> autocast, at::Device device) {
    at::GradMode::set_enabled(grad);
    set_autocast(casting_device(device.type()), autocast);
}

TORCH_LIBRARY_FRAGMENT(vpp, library) {
    // CONSERVATIVE: it has side effects, so no pass may remove or move it.
    library.def(torch::schema("vpp::set_modes(bool grad, ScalarType? autocast, Device device) -> ()",
                              c10::AliasAnalysisKind::CONSERVATIVE),
                set_modes);
}

/// "torch.autograd.grad_mode.no_grad"; empty for what is no object of a class.
std::string class_of(const Value* value) {
    const auto type = value->type()->cast<c10::ClassType>();
    if (!type || !type->name()) return "";
    const std::string name = type->name()->qualifiedName();
    const std::string prefix = "__torch__.";
    return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

bool is_no_grad(const Value* object) {
    return class_of(object) == "torch.autograd.grad_mode.no_grad";
}

bool is_autocast(const Value* object) {
    const std::string name = class_of(object);
    return name == "torch.amp.autocast_mode.autocast" || name == "torch.cuda.amp.autocast_mode.autocast" ||
           name == "torch.cpu.amp.autocast_mode.autocast";
}

/// Where a range of the model's code begins or ends.
bool is_border(const Node* node) {
    const bool kind = node->kind() == prim::Enter || node->kind() == prim::Exit;
    return kind && (is_no_grad(node->input(0)) || is_autocast(node->input(0)));
}

/// What is in force at a place of the code.
struct ModeState {
    OpModes modes;
    at::ScalarType lower_dtype = at::kFloat;  ///< of the autocast that is on, or would be if it were
};

class ModeFinder {
  public:
    ModeFinder(JitGraph& jit, at::DeviceType device) : jit_(jit), device_(device) {}

    void run() {
        jit_.casts = jit_.modes.autocast.has_value();
        ModeState state{jit_.modes, jit_.modes.autocast.value_or(at::autocast::get_autocast_dtype(device_))};
        // Forward that takes gradients itself, as of an energy for forces, does so in evaluation too.
        if (std::ranges::any_of(jit_.graph->nodes(), takes_gradients)) state.modes.grad = true;
        visit(jit_.graph->block(), state);
        remove_dead();
        list_ops(jit_);
        for (JitOp& op : jit_.ops) op.modes = modes_of_.at(op.node);
    }

  private:
    void visit(Block* block, ModeState& state) {
        const bool inside = block != jit_.graph->block();
        std::vector<ModeState> around;
        for (auto it = block->nodes().begin(); it != block->nodes().end();) {
            Node* node = *it++;
            if (!change(node, state, around)) {
                modes_of_[node] = state.modes;
                visit_blocks(node, state);
                continue;
            }
            if (inside) {
                const torch::jit::WithInsertPoint here(node);
                jit_.graph->insertNode(make_set_modes(*jit_.graph, state.modes));
            }
            remove(node);
        }
    }

    void visit_blocks(Node* node, const ModeState& state) {
        for (Block* block : node->blocks()) {
            ModeState inner = state;
            visit(block, inner);
            if (inner.modes != state.modes) {
                throw Error(ErrorKind::BadData, op_text(jit_, node) +
                                                    " is a branch or loop that turns gradients on or off and leaves "
                                                    "them so; use `with torch.no_grad():` inside of it");
            }
        }
    }

    /// Whether the node does nothing but change the state.
    bool change(const Node* node, ModeState& state, std::vector<ModeState>& around) {
        if (is_op(node, "aten::is_grad_enabled")) was_enabled_[node->output()] = state.modes.grad;
        if (is_op(node, "aten::set_grad_enabled")) {
            state.modes.grad = flag(node, node->input(0), "whether gradients are recorded");
            return true;
        }
        if (!is_border(node)) return false;
        if (node->kind() == prim::Enter) {
            around.push_back(state);
            enter(node, state);
        } else {
            check(!around.empty(), "every Exit has its Enter");
            leave(node, around.back(), state);
            around.pop_back();
        }
        return true;
    }

    /// As Python's guards: each gives back what it sets itself. Gradients that are turned off in a range of autocast
    /// stay off behind it.
    static void leave(const Node* node, const ModeState& before, ModeState& state) {
        if (is_no_grad(node->input(0))) {
            state.modes.grad = before.modes.grad;
        } else {
            state.modes.autocast = before.modes.autocast;
            state.lower_dtype = before.lower_dtype;
        }
    }

    void enter(const Node* node, ModeState& state) {
        if (is_no_grad(node->input(0))) {
            state.modes.grad = false;
            return;
        }
        // As PyTorch: one for another device changes nothing here. A name that is computed (x.device.type) is ours.
        const auto name = torch::jit::toIValue(attribute(node, "device"));
        const bool is_named = name && name->isString();
        if (is_named && name->toStringRef() != c10::DeviceTypeName(device_, /*lower_case=*/true)) return;
        const auto dtype = torch::jit::toIValue(attribute(node, "fast_dtype"));
        if (dtype && dtype->isInt()) {
            state.lower_dtype = static_cast<at::ScalarType>(dtype->toInt());
        } else if (!is_op(attribute(node, "fast_dtype")->node(), "aten::get_autocast_dtype")) {
            follows_data(node, "the dtype of torch.autocast");
        }
        const bool is_lower = state.lower_dtype == at::kBFloat16 || state.lower_dtype == at::kHalf;
        const bool enabled = flag(node, attribute(node, "_enabled"), "whether torch.autocast is on") && is_lower;
        state.modes.autocast = enabled ? std::optional(state.lower_dtype) : std::nullopt;
        jit_.casts = jit_.casts || enabled;
    }

    /// What a guard that is entered was made with.
    const Value* attribute(const Node* enter, const char* name) const {
        const Value* found = nullptr;
        for (const torch::jit::Use& use : enter->input(0)->uses()) {
            if (use.user->kind() != prim::SetAttr || use.user->s(attr::name) != name) continue;
            if (found) follows_data(enter, "what torch.autocast is made with");
            found = use.user->input(1);
        }
        if (!found) follows_data(enter, "what torch.autocast is made with");
        return found;
    }

    bool flag(const Node* node, const Value* value, const char* what) const {
        const auto constant = torch::jit::toIValue(value);
        if (constant && constant->isBool()) return constant->toBool();
        const auto known = was_enabled_.find(value);
        if (known == was_enabled_.end()) follows_data(node, what);
        return known->second;
    }

    [[noreturn]] void follows_data(const Node* node, const std::string& what) const {
        throw Error(ErrorKind::BadData, op_text(jit_, node) + ": " + what +
                                            " must be known before the model runs; pass a constant or an attribute of "
                                            "the module");
    }

    void remove(Node* node) {
        if (node->kind() == prim::Enter) {
            objects_.insert(node->input(0)->node());
            node->output()->replaceAllUsesWith(node->input(0));
        }
        if (is_op(node, "aten::set_grad_enabled")) left_over_.push_back(node->input(0));
        node->destroy();
    }

    /// Guards that nothing enters any more, and what they and the mode ops alone were made of.
    void remove_dead() {
        for (Node* object : objects_) remove_object(object);
        while (!left_over_.empty()) {
            Node* node = left_over_.back()->node();
            left_over_.pop_back();
            const bool needed = node->hasUses() || node->hasSideEffects() || node->kind() == prim::Param;
            if (needed || !node->blocks().empty()) continue;
            left_over_.insert(left_over_.end(), node->inputs().begin(), node->inputs().end());
            for (Value* made : node->outputs()) std::erase(left_over_, made);
            node->destroy();
        }
    }

    void remove_object(Node* object) {
        std::set<Node*> users;
        for (const torch::jit::Use& use : object->output()->uses()) users.insert(use.user);
        const auto sets = [](const Node* user) { return user->kind() == prim::SetAttr; };
        if (object->kind() != prim::CreateObject || !std::ranges::all_of(users, sets)) return;
        for (Node* user : users) {
            left_over_.push_back(user->input(1));
            user->destroy();
        }
        std::erase(left_over_, object->output());
        object->destroy();
    }

    JitGraph& jit_;
    at::DeviceType device_;
    std::unordered_map<const Node*, OpModes> modes_of_;
    std::unordered_map<const Value*, bool> was_enabled_;  ///< results of torch.is_grad_enabled()
    std::set<Node*> objects_;                             ///< the makers of guards
    std::vector<Value*> left_over_;                       ///< may have lost their last use
};

}  // namespace

Node* make_set_modes(torch::jit::Graph& graph, const OpModes& modes) {
    Node* call = graph.create(c10::Symbol::fromQualString("vpp::set_modes"), 0);
    call->addInput(graph.insertConstant(modes.grad));
    call->addInput(graph.insertConstant(modes.autocast ? c10::IValue(*modes.autocast) : c10::IValue()));
    call->addInput(graph.insertConstant(at::Device(at::kCPU)));
    return call;
}

void find_modes(JitGraph& jit, at::DeviceType device) {
    ModeFinder(jit, device).run();
}

}  // namespace vpp
