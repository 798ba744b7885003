#include "stage/split_backward.hpp"

#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/functions/tensor.h>

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

/// Of a write into a part of a tensor: the node of what was written has all of these edges but the first one again.
Node* node_inside(Node& node) {
    auto* write = dynamic_cast<torch::autograd::CopySlices*>(&node);
    return write ? write->fn.get() : nullptr;
}

void cut_edges_into(const InputPath& path, Node& node) {
    Node* inside = node_inside(node);
    for (size_t i = 0; i < node.next_edges().size(); ++i) {
        torch::autograd::Edge& edge = node.next_edges()[i];
        if (!path.contains(edge)) continue;
        edge = needs_its_input_gradient(node) ? torch::autograd::Edge(std::make_shared<Sink>(edge), 0)
                                              : torch::autograd::Edge();
        if (inside && i > 0) inside->next_edges()[i] = edge;
    }
}

/// Gives gradients on and keeps none: autograd adds to one in its memory and frees it after its use, as where the op
/// that made it is in the same graph.
class HandOver : public Node {
  public:
    explicit HandOver(BackwardRoots roots)
        : Node(std::move(roots.edges)),
          gradients_(std::move(roots.gradients)),
          start_(at::empty({0}, gradients_.front().options())) {
        add_input_metadata(start_);
    }
    /// What it is run with.
    const at::Tensor& start() const { return start_; }
    variable_list apply(variable_list&&) override { return std::move(gradients_); }

  private:
    variable_list gradients_;
    at::Tensor start_;
};

variable_list execute(BackwardRoots roots, bool keep_graph, bool accumulate, const edge_list& targets) {
    const BackwardOnThisThread one_order;
    const auto begin = std::make_shared<HandOver>(std::move(roots));
    return torch::autograd::Engine::get_default_engine().execute({{begin, 0}}, {begin->start()}, keep_graph,
                                                                 /*create_graph=*/false, accumulate, targets);
}

}  // namespace

void BackwardRoots::add(torch::autograd::Edge edge, at::Tensor gradient) {
    if (!gradient.defined()) return;
    edges.push_back(std::move(edge));
    gradients.push_back(std::move(gradient));
}

void BackwardRoots::add(BackwardRoots more) {
    for (size_t i = 0; i < more.edges.size(); ++i) add(std::move(more.edges[i]), std::move(more.gradients[i]));
}

void run_backward(BackwardRoots roots) {
    if (!roots.edges.empty()) execute(std::move(roots), /*keep_graph=*/false, /*accumulate=*/true, {});
}

variable_list SplitBackward::run_inputs(BackwardRoots roots, const std::shared_ptr<InputNode>& inputs) {
    const InputPath path(roots.edges, inputs.get());
    BackwardRoots on_path;
    for (size_t i = 0; i < roots.edges.size(); ++i) {
        (path.contains(roots.edges[i]) ? on_path : roots_).add(roots.edges[i], std::move(roots.gradients[i]));
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
    variable_list gradients = execute(std::move(on_path), /*keep_graph=*/true, /*accumulate=*/false, targets);
    for (Branch& branch : branches_) branch.node->pre_hooks().pop_back();

    std::unordered_map<const Node*, bool> branches;
    for (const Branch& branch : branches_) branches[branch.node.get()] = true;
    for (const std::shared_ptr<Node>& node : path.nodes()) {
        if (!branches.contains(node.get())) node->release_variables();
    }
    for (const Branch& branch : branches_) cut_edges_into(path, *branch.node);
    return gradients;
}

void SplitBackward::run_weights(BackwardRoots more) {
    BackwardRoots roots = std::move(roots_);
    roots.add(std::move(more));
    for (Branch& branch : branches_) {
        for (size_t i = 0; i < branch.gradients.size(); ++i) {
            roots.add({branch.node, static_cast<uint32_t>(i)}, std::move(branch.gradients[i]));
        }
    }
    branches_.clear();
    run_backward(std::move(roots));
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
