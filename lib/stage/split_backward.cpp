#include "stage/split_backward.hpp"

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function_hook.h>

#include <unordered_map>

#include "graph/backward_thread.hpp"
#include "stage/input_node.hpp"

namespace vpp {

using torch::autograd::edge_list;
using torch::autograd::Node;
using torch::autograd::variable_list;

namespace {

/// The nodes of a graph from which a gradient can reach one node.
class InputPath {
  public:
    InputPath(const edge_list& roots, const Node* target) {
        leads_[target] = true;
        for (const torch::autograd::Edge& root : roots) visit(root.function.get());
    }

    bool contains(const Node* node) const {
        const auto found = leads_.find(node);
        return found != leads_.end() && found->second;
    }
    bool contains(const torch::autograd::Edge& edge) const { return contains(edge.function.get()); }

    /// All of its nodes but the target, kept alive.
    const std::vector<std::shared_ptr<Node>>& nodes() const { return nodes_; }

  private:
    /// Depth first without recursion: graphs are deeper than stacks.
    void visit(Node* root) {
        if (!leads_.emplace(root, false).second) return;
        std::vector<std::pair<Node*, size_t>> open{{root, 0}};
        while (!open.empty()) {
            auto& [node, next] = open.back();
            if (next == node->next_edges().size()) {
                close(node);
                open.pop_back();
                continue;
            }
            Node* child = node->next_edges()[next++].function.get();
            if (child && leads_.emplace(child, false).second) open.emplace_back(child, 0);
        }
    }

    void close(Node* node) {
        for (const torch::autograd::Edge& edge : node->next_edges()) {
            if (!contains(edge)) continue;
            leads_[node] = true;
            nodes_.push_back(node->getptr());
            return;
        }
    }

    std::unordered_map<const Node*, bool> leads_;
    std::vector<std::shared_ptr<Node>> nodes_;
};

/// Keeps the gradients that a node is about to take.
class Capture : public torch::autograd::FunctionPreHook {
  public:
    explicit Capture(variable_list& gradients) : gradients_(gradients) {}
    variable_list operator()(const variable_list& gradients) override {
        gradients_ = gradients;
        return gradients;
    }

  private:
    variable_list& gradients_;
};

/// Swallows a gradient.
class Sink : public Node {
  public:
    /// Takes what the edge's node would have taken.
    explicit Sink(const torch::autograd::Edge& edge) {
        const auto& taken = edge.function->input_metadata(edge.input_nr);
        add_input_metadata(taken.options(), taken.shape_as_dim_vector(), taken.is_tensor_subclass(),
                           taken.is_nested_tensor(), taken.grad_dtype());
    }
    variable_list apply(variable_list&&) override { return {}; }
};

/// native_group_norm_backward crashes on channels-last memory when it is not asked for the gradient of its input
/// (LibTorch 2.11): there the gradient is computed again and dropped.
bool needs_its_input_gradient(const Node& node) {
    return node.name() == "NativeGroupNormBackward0";
}

void cut_edges_into(const InputPath& path, Node& node) {
    for (torch::autograd::Edge& edge : node.next_edges()) {
        if (!path.contains(edge)) continue;
        edge = needs_its_input_gradient(node) ? torch::autograd::Edge(std::make_shared<Sink>(edge), 0)
                                              : torch::autograd::Edge();
    }
}

variable_list execute(const BackwardRoots& roots, bool keep_graph, bool accumulate, const edge_list& targets) {
    const BackwardOnThisThread one_order;
    return torch::autograd::Engine::get_default_engine().execute(roots.edges, roots.gradients, keep_graph,
                                                                 /*create_graph=*/false, accumulate, targets);
}

}  // namespace

void BackwardRoots::add(torch::autograd::Edge edge, at::Tensor gradient) {
    if (!gradient.defined()) return;
    edges.push_back(std::move(edge));
    gradients.push_back(std::move(gradient));
}

void BackwardRoots::add(const BackwardRoots& more) {
    edges.insert(edges.end(), more.edges.begin(), more.edges.end());
    gradients.insert(gradients.end(), more.gradients.begin(), more.gradients.end());
}

void run_backward(const BackwardRoots& roots) {
    if (!roots.edges.empty()) execute(roots, /*keep_graph=*/false, /*accumulate=*/true, {});
}

variable_list SplitBackward::run_inputs(const BackwardRoots& roots, const std::shared_ptr<InputNode>& inputs) {
    const InputPath path(roots.edges, inputs.get());
    BackwardRoots on_path;
    for (size_t i = 0; i < roots.edges.size(); ++i) {
        (path.contains(roots.edges[i]) ? on_path : roots_).add(roots.edges[i], roots.gradients[i]);
    }
    for (const std::shared_ptr<Node>& node : path.nodes()) {
        for (const torch::autograd::Edge& edge : node->next_edges()) {
            if (!edge.is_valid() || path.contains(edge)) continue;
            branches_.push_back({node, {}});
            break;
        }
    }
    edge_list targets;
    for (uint32_t slot = 0; slot < inputs->num_inputs(); ++slot) targets.emplace_back(inputs, slot);
    if (on_path.edges.empty()) return variable_list(targets.size());

    for (Branch& branch : branches_) branch.node->add_pre_hook(std::make_unique<Capture>(branch.gradients));
    variable_list gradients = execute(on_path, /*keep_graph=*/true, /*accumulate=*/false, targets);
    for (Branch& branch : branches_) branch.node->pre_hooks().pop_back();

    std::unordered_map<const Node*, bool> branches;
    for (const Branch& branch : branches_) branches[branch.node.get()] = true;
    for (const std::shared_ptr<Node>& node : path.nodes()) {
        if (!branches.contains(node.get())) node->release_variables();
    }
    for (const Branch& branch : branches_) cut_edges_into(path, *branch.node);
    return gradients;
}

void SplitBackward::run_weights(const BackwardRoots& more) {
    BackwardRoots roots = std::move(roots_);
    roots.add(more);
    for (Branch& branch : branches_) {
        for (size_t i = 0; i < branch.gradients.size(); ++i) {
            roots.add({branch.node, static_cast<uint32_t>(i)}, std::move(branch.gradients[i]));
        }
    }
    branches_.clear();
    run_backward(roots);
}

int64_t SplitBackward::captured_bytes() const {
    int64_t bytes = 0;
    const auto add = [&](const variable_list& gradients) {
        for (const at::Tensor& gradient : gradients)
            bytes += gradient.defined() ? static_cast<int64_t>(gradient.nbytes()) : 0;
    };
    for (const Branch& branch : branches_) add(branch.gradients);
    add(roots_.gradients);
    return bytes;
}

}  // namespace vpp
