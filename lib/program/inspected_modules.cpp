#include "program/inspected_modules.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>

namespace vpp {

namespace {

/// A submodule with all that lies in it.
struct Node {
    std::string path, name, class_name;
    int parent = -1;
    std::vector<int> children;
    int first_op = std::numeric_limits<int>::max();
    int own_ops = 0;
    double own_flops = 0;
    std::set<int> own_stages;
    int64_t own_parameters = 0, own_bytes = 0;
    InspectedModule all;
    std::set<int> stages;
    int structure = -1;  ///< equal numbers: equal structure

    bool shows() const { return all.num_ops > 0 || all.num_parameters > 0; }
};

class TreeMaker {
  public:
    TreeMaker(const Graph& graph, const Split& split, int depth) : graph_(graph), split_(split), depth_(depth) {}

    InspectedTree make() {
        add_node("");
        for (const GraphModule& module : graph_.modules) {
            nodes_[static_cast<size_t>(add_node(module.name))].class_name = module.class_name;
        }
        for (int op = 0; op < graph_.num_ops(); ++op) add_op(op);
        for (const GraphParameter& parameter : graph_.parameters) add_parameter(parameter);
        sum_up();
        row_of_node_.assign(nodes_.size(), -1);
        show(0, 0, "model");
        for (size_t i = 1; i < nodes_.size(); ++i) {
            if (row_of_node_[i] < 0) row_of_node_[i] = row_of_node_[static_cast<size_t>(nodes_[i].parent)];
        }
        make_blocks();
        make_flows();
        return std::move(tree_);
    }

  private:
    /// With its parents, which get smaller numbers.
    int add_node(const std::string& path) {
        const auto known = index_.find(path);
        if (known != index_.end()) return known->second;
        Node node;
        node.path = path;
        if (!path.empty()) {
            const size_t dot = path.rfind('.');
            node.name = dot == std::string::npos ? path : path.substr(dot + 1);
            node.parent = add_node(dot == std::string::npos ? "" : path.substr(0, dot));
        }
        const int number = static_cast<int>(nodes_.size());
        if (node.parent >= 0) nodes_[static_cast<size_t>(node.parent)].children.push_back(number);
        nodes_.push_back(std::move(node));
        index_[path] = number;
        return number;
    }

    void add_op(int op) {
        const GraphOp& entry = graph_.ops[static_cast<size_t>(op)];
        node_of_op_.push_back(add_node(entry.module));
        Node& node = nodes_[static_cast<size_t>(node_of_op_.back())];
        node.first_op = std::min(node.first_op, op);
        ++node.own_ops;
        node.own_flops += entry.flops;
        node.own_stages.insert(split_.stage_of_op(op));
    }

    void add_parameter(const GraphParameter& parameter) {
        if (parameter.is_buffer) return;
        std::string path = parameter.name;
        do {
            const size_t dot = path.rfind('.');
            path = dot == std::string::npos ? "" : path.substr(0, dot);
        } while (!index_.contains(path));
        Node& node = nodes_[static_cast<size_t>(index_.at(path))];
        node.own_parameters += num_elements(parameter.shape);
        node.own_bytes += parameter.bytes();
    }

    /// Children stand behind their parents, so this goes backwards.
    void sum_up() {
        for (size_t i = nodes_.size(); i-- > 0;) {
            Node& node = nodes_[i];
            node.stages.insert(node.own_stages.begin(), node.own_stages.end());
            node.all.num_ops += node.own_ops;
            node.all.flops += node.own_flops;
            node.all.num_parameters += node.own_parameters;
            node.all.parameter_bytes += node.own_bytes;
            if (node.parent < 0) continue;
            Node& parent = nodes_[static_cast<size_t>(node.parent)];
            parent.stages.insert(node.stages.begin(), node.stages.end());
            parent.first_op = std::min(parent.first_op, node.first_op);
            parent.all.num_ops += node.all.num_ops;
            parent.all.flops += node.all.flops;
            parent.all.num_parameters += node.all.num_parameters;
            parent.all.parameter_bytes += node.all.parameter_bytes;
        }
        for (size_t i = nodes_.size(); i-- > 0;) number_structure(nodes_[i]);
    }

    /// In the order of execution, what does nothing left out.
    std::vector<int> shown_children(const Node& node) const {
        std::vector<int> shown;
        for (int child : node.children) {
            if (nodes_[static_cast<size_t>(child)].shows()) shown.push_back(child);
        }
        std::stable_sort(shown.begin(), shown.end(), [&](int a, int b) {
            return nodes_[static_cast<size_t>(a)].first_op < nodes_[static_cast<size_t>(b)].first_op;
        });
        return shown;
    }

    void number_structure(Node& node) {
        std::string text = node.class_name + ' ' + std::to_string(node.all.num_parameters) + ' ' +
                           std::to_string(node.all.parameter_bytes) + ' ' + std::to_string(node.all.num_ops) + ' ' +
                           std::to_string(node.all.flops);
        for (int child : node.children) {
            const Node& entry = nodes_[static_cast<size_t>(child)];
            text += ' ' + entry.name + ':' + std::to_string(entry.structure);
        }
        node.structure = structures_.emplace(std::move(text), static_cast<int>(structures_.size())).first->second;
    }

    int add_row(const Node& node, int depth, const std::string& name) {
        InspectedModule row = node.all;
        row.depth = depth;
        row.name = name;
        row.path = node.path;
        row.class_name = node.class_name;
        row.stages.assign(node.stages.begin(), node.stages.end());
        tree_.modules.push_back(std::move(row));
        return static_cast<int>(tree_.modules.size()) - 1;
    }

    /// The row of a submodule, and the rows in it.
    void show(int number, int depth, const std::string& name) {
        const Node& node = nodes_[static_cast<size_t>(number)];
        row_of_node_[static_cast<size_t>(number)] = add_row(node, depth, name);
        const bool opens = node.stages.size() > 1 || depth < depth_;
        const std::vector<int> children = opens ? shown_children(node) : std::vector<int>{};
        if (children.empty()) return;
        for (size_t begin = 0; begin < children.size();) {
            size_t end = begin + 1;
            while (end < children.size() && are_alike(children[begin], children[end])) ++end;
            if (end - begin == 1)
                show(children[begin], depth + 1, nodes_[static_cast<size_t>(children[begin])].name);
            else
                show_folded(std::vector<int>(children.begin() + static_cast<ptrdiff_t>(begin),
                                             children.begin() + static_cast<ptrdiff_t>(end)),
                            depth + 1);
            begin = end;
        }
        if (node.own_ops > 0) show_own(number, depth + 1);
    }

    bool are_alike(int a, int b) const {
        const Node &first = nodes_[static_cast<size_t>(a)], &second = nodes_[static_cast<size_t>(b)];
        return first.structure == second.structure && first.stages == second.stages && first.stages.size() <= 1;
    }

    void show_folded(const std::vector<int>& numbers, int depth) {
        const Node& first = nodes_[static_cast<size_t>(numbers.front())];
        const int row = add_row(first, depth, first.name + ".." + nodes_[static_cast<size_t>(numbers.back())].name);
        InspectedModule& entry = tree_.modules[static_cast<size_t>(row)];
        entry.count = static_cast<int>(numbers.size());
        entry.num_ops *= entry.count;
        entry.num_parameters *= entry.count;
        entry.parameter_bytes *= entry.count;
        entry.flops *= entry.count;
        for (int number : numbers) row_of_node_[static_cast<size_t>(number)] = row;
    }

    void show_own(int number, int depth) {
        const Node& node = nodes_[static_cast<size_t>(number)];
        const int row = add_row(node, depth, "(itself)");
        InspectedModule& entry = tree_.modules[static_cast<size_t>(row)];
        entry.class_name.clear();
        entry.num_ops = node.own_ops;
        entry.num_parameters = node.own_parameters;
        entry.parameter_bytes = node.own_bytes;
        entry.flops = node.own_flops;
        entry.stages.assign(node.own_stages.begin(), node.own_stages.end());
        row_of_node_[static_cast<size_t>(number)] = row;
    }

    void make_blocks() {
        std::map<std::pair<int, int>, int> known;  // stage and row -> block
        for (int op = 0; op < graph_.num_ops(); ++op) {
            const int row = row_of_node_[static_cast<size_t>(node_of_op_[static_cast<size_t>(op)])];
            const int stage = split_.stage_of_op(op);
            const auto [entry, is_new] = known.emplace(std::pair{stage, row}, static_cast<int>(tree_.blocks.size()));
            if (is_new) tree_.blocks.push_back({row, stage, 0});
            ++tree_.blocks[static_cast<size_t>(entry->second)].num_ops;
            block_of_op_.push_back(entry->second);
        }
    }

    void make_flows() {
        std::map<std::pair<int, int>, std::set<int>> tensors;
        for (const GraphValue& value : graph_.values) {
            if (value.producer < 0 || value.tensors.empty()) continue;
            const int from = block_of_op_[static_cast<size_t>(value.producer)];
            for (int use : value.uses) {
                const int to = block_of_op_[static_cast<size_t>(use)];
                if (from != to) tensors[{from, to}].insert(value.tensors.begin(), value.tensors.end());
            }
        }
        for (const auto& [ends, carried] : tensors) {
            InspectedFlow flow{ends.first, ends.second, 0};
            for (int tensor : carried) flow.bytes += graph_.tensors[static_cast<size_t>(tensor)].bytes();
            tree_.flows.push_back(flow);
        }
    }

    const Graph& graph_;
    const Split& split_;
    int depth_;
    std::vector<Node> nodes_;
    std::unordered_map<std::string, int> index_, structures_;
    std::vector<int> node_of_op_, row_of_node_, block_of_op_;
    InspectedTree tree_;
};

}  // namespace

InspectedTree inspect_modules(const Graph& graph, const Split& split, int depth) {
    return TreeMaker(graph, split, depth).make();
}

std::string modules_of_stage(const Graph& graph, const StageSpec& stage) {
    std::vector<std::string> names;
    for (int op = stage.ops.begin; op < stage.ops.end; ++op) {
        const std::string& module = graph.ops[static_cast<size_t>(op)].module;
        if (module.empty()) continue;
        const size_t first = module.find('.');
        const bool numbered =
            first != std::string::npos && first + 1 < module.size() && std::isdigit(module[first + 1]);
        const std::string name = numbered ? module.substr(0, module.find('.', first + 1)) : module.substr(0, first);
        if (names.empty() || names.back() != name) names.push_back(name);
    }
    if (names.empty()) return "-";
    if (names.size() == 1) return names.front();
    return names.front() + (names.size() == 2 ? ", " : " .. ") + names.back();
}

}  // namespace vpp
