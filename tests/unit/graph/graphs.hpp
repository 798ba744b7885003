#pragma once
// Graphs made by hand, without torch: for the tests of splitting, stages and programs.
#include <algorithm>
#include <string>
#include <vector>

#include "graph/graph.hpp"

namespace vpp::test {

/// Adds one thing after the other; ops run in the order in which they are added.
class GraphMaker {
  public:
    int input(const std::string& name, std::vector<int64_t> shape = {2, 4}) {
        const int value = add_value(name, std::move(shape), GraphTensor::kFromOutside, false);
        tensor_of(value).input = static_cast<int>(graph_.inputs.size());
        graph_.inputs.push_back({name, value});
        return value;
    }

    int parameter(const std::string& name, int64_t size, bool requires_grad = true, bool is_buffer = false) {
        const int value = add_value(name, {size}, GraphTensor::kFromOutside, requires_grad);
        tensor_of(value).parameter = static_cast<int>(graph_.parameters.size());
        graph_.parameters.push_back({name, {}, DType::F32, {size}, is_buffer, requires_grad, false, {}});
        return value;
    }

    /// An op of `module` that makes one tensor of `size` float32 elements.
    int op(const std::string& module, const std::vector<int>& inputs, double flops = 1, int64_t size = 8) {
        const int value = add_value("v" + std::to_string(graph_.values.size()), {size}, graph_.num_ops(), true);
        add_op("aten::op", module, inputs, value, flops);
        return value;
    }

    /// An op that writes `target` in place and gives it back as a new value of the same tensor.
    int write(const std::string& module, int target) {
        GraphValue value = graph_.values[static_cast<size_t>(target)];
        value.name += "_";
        value.producer = graph_.num_ops();
        value.uses.clear();
        tensor_of(target).writers.push_back(graph_.num_ops());
        graph_.values.push_back(value);
        const int made = static_cast<int>(graph_.values.size()) - 1;
        add_op("aten::write_", module, {target}, made, 1);
        return made;
    }

    /// The same where `target` required no gradient before and does behind it.
    int write_trained(const std::string& module, int target) {
        if (tensor_of(target).gradient_flips.empty()) tensor_of(target).requires_grad = false;
        tensor_of(target).gradient_flips.push_back(graph_.num_ops());
        return write(module, target);
    }

    /// An op that makes a value which is no tensor, with these tensors in it.
    int plain(const std::string& module, const std::vector<int>& inputs, const std::vector<int>& elements = {}) {
        GraphValue value;
        value.name = "p" + std::to_string(graph_.values.size());
        value.type = elements.empty() ? "int" : "List[Tensor]";
        for (int element : elements) value.tensors.push_back(graph_.values[static_cast<size_t>(element)].tensors[0]);
        value.producer = graph_.num_ops();
        graph_.values.push_back(value);
        const int made = static_cast<int>(graph_.values.size()) - 1;
        add_op("prim::plain", module, inputs, made, 0);
        return made;
    }

    GraphOp& last_op() { return graph_.ops.back(); }
    void forbid(int cut, const std::string& reason) { forbidden_.emplace_back(cut, reason); }

    /// Submodules in the order of registration: "name:Class".
    void modules(const std::vector<std::string>& names) {
        graph_.modules.push_back({"", "Model"});
        for (const std::string& name : names) {
            const size_t colon = name.find(':');
            graph_.modules.push_back({name.substr(0, colon), name.substr(colon + 1)});
        }
    }

    Graph finish() {
        graph_.loss = graph_.ops.back().outputs.at(0);
        graph_.cuts.assign(graph_.ops.size(), {});
        for (const auto& [cut, reason] : forbidden_) graph_.cuts[static_cast<size_t>(cut)] = {false, reason};
        return graph_;
    }

  private:
    GraphTensor& tensor_of(int value) {
        return graph_.tensors[static_cast<size_t>(graph_.values[static_cast<size_t>(value)].tensors[0])];
    }

    int add_value(const std::string& name, std::vector<int64_t> shape, int producer, bool requires_grad) {
        GraphTensor tensor;
        tensor.name = name;
        tensor.shape = std::move(shape);
        tensor.requires_grad = requires_grad;
        tensor.producer = producer;
        tensor.message_bytes = tensor.bytes() + 1024;
        graph_.tensors.push_back(std::move(tensor));
        graph_.values.push_back({name, "Tensor", true, {static_cast<int>(graph_.tensors.size()) - 1}, producer, {}});
        return static_cast<int>(graph_.values.size()) - 1;
    }

    void add_op(const std::string& kind, const std::string& module, const std::vector<int>& inputs, int output,
                double flops) {
        const int index = graph_.num_ops();
        GraphOp op;
        op.kind = kind;
        op.module = module;
        op.inputs = inputs;
        op.outputs = {output};
        op.flops = flops;
        for (int value : inputs) {
            graph_.values[static_cast<size_t>(value)].uses.push_back(index);
            for (int tensor : graph_.values[static_cast<size_t>(value)].tensors) {
                const int parameter = graph_.tensors[static_cast<size_t>(tensor)].parameter;
                if (parameter < 0) continue;
                op.parameters.push_back(parameter);
                graph_.parameters[static_cast<size_t>(parameter)].uses.push_back(index);
            }
        }
        graph_.ops.push_back(std::move(op));
    }

    Graph graph_;
    std::vector<std::pair<int, std::string>> forbidden_;
};

/// A chain of ops with these FLOPs, op i in module "m<i>".
inline Graph chain(const std::vector<double>& flops) {
    GraphMaker maker;
    int value = maker.input("x");
    for (size_t i = 0; i < flops.size(); ++i) value = maker.op("m" + std::to_string(i), {value}, flops[i]);
    return maker.finish();
}

}  // namespace vpp::test
