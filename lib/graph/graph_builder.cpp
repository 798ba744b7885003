#include "graph/graph_builder.hpp"

#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>
#include <set>
#include <unordered_set>

#include "base/error.hpp"
#include "graph/cut_rules.hpp"
#include "graph/initial_values.hpp"
#include "graph/ivalue_tensors.hpp"
#include "graph/jit_branches.hpp"
#include "graph/jit_families.hpp"
#include "graph/jit_parameters.hpp"
#include "graph/memory_layout.hpp"
#include "graph/torch_dtype.hpp"

namespace vpp {

using torch::jit::Node;
using torch::jit::Value;
namespace prim = torch::jit::prim;

namespace {

constexpr int64_t kMessageHeaderBytes = 1024;  // room for sizes and strides (stage/message.hpp)

/// The type of its elements, or of their parts; where no message holds it, one as large, for what is only counted.
DType counted_as(const at::Tensor& tensor) {
    if (const auto dtype = carried_dtype(c10::toRealValueType(tensor.scalar_type()))) return *dtype;
    const size_t bytes = tensor.itemsize();
    return bytes == 1 ? DType::U8 : bytes == 2 ? DType::I16 : bytes == 4 ? DType::I32 : DType::I64;
}

/// Whether its memory, as it lies, is what it is, but for the sign of imaginary parts.
bool can_travel(const at::Tensor& tensor) {
    const at::ScalarType type = c10::toRealValueType(tensor.scalar_type());
    return tensor.layout() == at::kStrided && carried_dtype(type) && !tensor.is_neg();
}

bool fills_memory(const at::Tensor& tensor) {
    if (!tensor.has_storage() || tensor.storage_offset() != 0) return false;
    const std::vector<int64_t> sizes = base_sizes_of(tensor);
    const bool is_dense = !overlaps(sizes, tensor.strides());
    const int64_t elements = is_dense ? num_elements(sizes) : memory_extent(sizes, tensor.strides());
    return static_cast<int64_t>(tensor.storage().nbytes()) <= elements * static_cast<int64_t>(tensor.itemsize());
}

/// The constant ignore_index of a loss.
std::vector<int64_t> ignored_targets(const Node* node) {
    const torch::jit::Value* index = argument_named(node, "ignore_index");
    const auto constant = index ? torch::jit::toIValue(index) : std::nullopt;
    return constant && constant->isInt() ? std::vector<int64_t>{constant->toInt()} : std::vector<int64_t>{};
}

/// An index of an op, and along which dimension it chooses.
struct IndexArgument {
    const Value* value;
    int64_t dim;
    bool from_end;  ///< it may be negative
};

/// The indices of x[a, :, b].
std::vector<IndexArgument> bracketed(const Node* list) {
    std::vector<IndexArgument> found;
    if (list->kind() != prim::ListConstruct) return found;
    for (size_t dim = 0; dim < list->inputs().size(); ++dim) {
        const Value* value = list->input(dim);
        if (value->type()->kind() != c10::TypeKind::NoneType) found.push_back({value, static_cast<int64_t>(dim), true});
    }
    return found;
}

std::vector<IndexArgument> index_arguments(const Node* node) {
    const std::string_view kind = node->kind().toQualString();
    if (kind == "aten::index") return bracketed(node->input(1)->node());
    if (kind != "aten::gather" && kind != "aten::index_select") return {};
    const auto dim = torch::jit::toIValue(node->input(1));
    if (!dim || !dim->isInt()) return {};
    return {{node->input(2), dim->toInt(), false}};
}

class GraphBuilder {
  public:
    GraphBuilder(const JitGraph& jit, const AliasFacts& aliases, const ProbeResult& probe, const JitValues& values)
        : jit_(jit), aliases_(aliases), families_(jit, aliases, values), probe_(probe), values_(values) {}

    Graph build() {
        add_parameters();
        add_inputs();
        for (size_t i = 0; i < jit_.ops.size(); ++i) add_op(static_cast<int>(i));
        add_writers();
        finish_parameters();
        finish_casts();
        refuse_gradients_kept();
        graph_.loss = index_.at(jit_.loss);
        check_loss();
        graph_.shapes_follow_data = probe_.shapes_follow_data;
        add_model_outputs();
        graph_.cuts = find_cuts(graph_, jit_, aliases_, families_, values_);
        return std::move(graph_);
    }

  private:
    int add_value(Value* value, int producer) {
        const c10::IValue& content = probe_.values.at(value);
        GraphValue entry;
        entry.name = value->debugName();
        entry.type = value->type()->str();
        entry.producer = producer;
        for (const at::Tensor& tensor : tensors_in(content)) {
            entry.tensors.push_back(tensor_id(tensor, entry, producer));
            if (producer < 0) is_new_memory(tensor);
        }
        entry.is_tensor = content.isTensor() && content.toTensor().defined();
        entry.plain_bytes = plain_bytes_of(content);
        if ((entry.is_tensor || is_tuple_of_tensors(*value->type())) && may_give_others(value->node())) {
            for (int tensor : entry.tensors) graph_.tensors[static_cast<size_t>(tensor)].from_branch = true;
        }
        const int id = static_cast<int>(graph_.values.size());
        check(values_.at(graph_.values.size()) == value, "values are numbered as listed");
        graph_.values.push_back(std::move(entry));
        index_[value] = id;
        return id;
    }

    int tensor_id(const at::Tensor& tensor, const GraphValue& value, int producer) {
        const auto [known, is_new] =
            tensor_of_.emplace(tensor.unsafeGetTensorImpl(), static_cast<int>(graph_.tensors.size()));
        if (!is_new) return known->second;
        GraphTensor entry;
        entry.name = value.name;
        entry.dtype = counted_as(tensor);
        entry.is_complex = tensor.is_complex();
        entry.travels = can_travel(tensor);
        entry.is_view = tensor.is_view();
        entry.fills_memory = fills_memory(tensor);
        entry.shape = tensor.sizes().vec();
        entry.requires_grad = tensor.requires_grad();
        const auto flips = probe_.gradient_flips.find(tensor.unsafeGetTensorImpl());
        if (flips != probe_.gradient_flips.end()) entry.gradient_flips = flips->second;
        if (entry.gradient_flips.size() % 2 == 1) entry.requires_grad = !entry.requires_grad;
        entry.message_bytes = (entry.travels ? payload_bytes_of(tensor) : entry.bytes()) + kMessageHeaderBytes;
        entry.producer = producer;
        graph_.tensors.push_back(std::move(entry));
        return known->second;
    }

    void add_parameters() {
        for (size_t i = 0; i < jit_.parameters.size(); ++i) {
            const JitParameter& from = jit_.parameters[i];
            GraphParameter parameter;
            parameter.name = from.name;
            parameter.aliases = from.aliases;
            parameter.dtype = from_torch(from.tensor.scalar_type());
            parameter.shape = from.tensor.sizes().vec();
            parameter.is_buffer = from.is_buffer;
            parameter.requires_grad = from.tensor.requires_grad();
            parameter.has_data = has_data(from.tensor, from.is_buffer);
            graph_.parameters.push_back(std::move(parameter));
            if (!from.value) continue;
            const int value = add_value(from.value, -1);
            graph_.tensors[static_cast<size_t>(graph_.values[static_cast<size_t>(value)].tensors[0])].parameter =
                static_cast<int>(i);
        }
    }

    void add_inputs() {
        for (const JitInput& input : jit_.inputs) {
            GraphInput entry{input.name, -1};
            if (input.value->hasUses()) {
                entry.value = add_value(input.value, -1);
                const int tensor = graph_.values[static_cast<size_t>(entry.value)].tensors[0];
                graph_.tensors[static_cast<size_t>(tensor)].input = static_cast<int>(graph_.inputs.size());
            }
            graph_.inputs.push_back(std::move(entry));
        }
    }

    /// Of dimensions whose sizes are known. Behind a mask it is not known which dimension an index is of.
    void add_indices(const Node* node, GraphOp& op) {
        const std::vector<IndexArgument> arguments = index_arguments(node);
        const auto chosen_from = arguments.empty() ? index_.end() : index_.find(node->input(0));
        if (chosen_from == index_.end()) return;
        const GraphTensor* from = graph_.tensor_of(chosen_from->second);
        if (!from || (probe_.shapes_follow_data && from->parameter < 0)) return;
        const auto num_dims = static_cast<int64_t>(from->shape.size());
        for (const IndexArgument& index : arguments) {
            const auto value = index_.find(index.value);
            if (value == index_.end()) continue;
            const GraphTensor* numbers = graph_.tensor_of(value->second);
            const int64_t dim = index.dim < 0 ? index.dim + num_dims : index.dim;
            const bool chooses = numbers && (numbers->dtype == DType::I64 || numbers->dtype == DType::I32);
            if (!chooses || dim < 0 || dim >= num_dims) return;
            const int64_t size = from->shape[static_cast<size_t>(dim)];
            op.indices.push_back({value->second, index.from_end ? -size : 0, size});
        }
    }

    void add_op(int index) {
        const JitOp& from = jit_.ops[static_cast<size_t>(index)];
        GraphOp op;
        op.kind = from.node->kind().toQualString();
        op.module = module_of(from.node);
        op.random = from.random;
        op.ignored_targets = ignored_targets(from.node);
        add_indices(from.node, op);
        for (const Value* used : values_used(from.node)) {
            const int value = index_.at(used);
            op.inputs.push_back(value);
            graph_.values[static_cast<size_t>(value)].uses.push_back(index);
            for (int tensor : graph_.values[static_cast<size_t>(value)].tensors) {
                const GraphTensor& entry = graph_.tensors[static_cast<size_t>(tensor)];
                if (entry.parameter >= 0) op.parameters.push_back(entry.parameter);
            }
        }
        add_casts(from, op);
        const int64_t new_elements = add_outputs(from.node, index, op);
        const double products = probe_.flops[static_cast<size_t>(index)];
        op.flops = products > 0 ? products : static_cast<double>(new_elements);
        if (!probe_.memory.empty()) {
            const OpMemory& memory = probe_.memory[static_cast<size_t>(index)];
            op.kept_bytes = memory.kept_bytes;
            op.inner_bytes = memory.inner_bytes;
            op.passing_bytes = memory.passing_bytes;
        }
        graph_.ops.push_back(std::move(op));
    }

    void add_casts(const JitOp& from, GraphOp& op) const {
        for (size_t input : cast_inputs(jit_, from)) {
            const GraphValue& value = graph_.values[static_cast<size_t>(index_.at(from.node->input(input)))];
            const int parameter = graph_.tensors[static_cast<size_t>(value.tensors[0])].parameter;
            const bool is_cast =
                parameter >= 0 && graph_.parameters[static_cast<size_t>(parameter)].dtype == DType::F32;
            if (is_cast) op.casts.push_back(parameter);
        }
    }

    /// Seen for the first time. A view may be of memory that its own op has made.
    bool is_new_memory(const at::Tensor& tensor) {
        return tensor.has_storage() && storages_.insert(tensor.storage().unsafeGetStorageImpl()).second;
    }

    /// Returns how many elements of memory the op made.
    int64_t add_outputs(Node* node, int index, GraphOp& op) {
        int64_t new_elements = 0;
        for (Value* made : node->outputs()) {
            op.outputs.push_back(add_value(made, index));
            for (const at::Tensor& tensor : tensors_in(probe_.values.at(made))) {
                if (!is_new_memory(tensor)) continue;
                new_elements += tensor.numel();
                op.kept_bytes += static_cast<int64_t>(tensor.storage().nbytes());
            }
        }
        return new_elements;
    }

    void add_writers() {
        std::vector<std::set<int>> writers(graph_.tensors.size());  // ops
        std::vector<bool> may_write;
        for (const JitOp& op : jit_.ops) may_write.push_back(aliases_.may_write_at_all(op.node));
        for (size_t v = 0; v < values_.size(); ++v) {
            if (graph_.values[v].tensors.empty() || !aliases_.has_writers(values_[v])) continue;
            const int producer = graph_.values[v].producer;
            for (size_t i : families_.ops_beside(v)) {
                // Before a value is there, what is written is the memory of others: a branch that gives a buffer on, as
                // probed, may in its other way have written what it has made.
                const bool is_before = static_cast<int>(i) <= producer;
                if (is_before || !may_write[i] || !aliases_.may_write(jit_.ops[i].node, values_[v])) continue;
                for (int tensor : graph_.values[v].tensors)
                    writers[static_cast<size_t>(tensor)].insert(static_cast<int>(i));
            }
        }
        for (size_t i = 0; i < writers.size(); ++i) {
            GraphTensor& tensor = graph_.tensors[i];
            tensor.writers.assign(writers[i].upper_bound(tensor.producer), writers[i].end());
        }
    }

    void finish_parameters() {
        for (const GraphTensor& tensor : graph_.tensors) {
            if (tensor.parameter >= 0 && !tensor.writers.empty()) {
                graph_.parameters[static_cast<size_t>(tensor.parameter)].written = true;
            }
        }
        for (size_t i = 0; i < graph_.ops.size(); ++i) {
            std::vector<int>& used = graph_.ops[i].parameters;
            std::sort(used.begin(), used.end());
            used.erase(std::unique(used.begin(), used.end()), used.end());
            for (int parameter : used)
                graph_.parameters[static_cast<size_t>(parameter)].uses.push_back(static_cast<int>(i));
        }
        refuse_shared_memory(jit_.parameters, [&](size_t parameter) {
            return graph_.parameters[parameter].requires_grad || graph_.parameters[parameter].written;
        });
    }

    /// What microbatches write has no copy for all of them: each casts it itself.
    void finish_casts() {
        for (GraphOp& op : graph_.ops) {
            std::erase_if(op.casts, [&](int parameter) {
                const GraphParameter& weight = graph_.parameters[static_cast<size_t>(parameter)];
                if (weight.written) op.kept_bytes += weight.cast_bytes();
                return weight.written;
            });
        }
    }

    /// A buffer would take its gradient along into the next microbatch, whose backward would go into a graph that is
    /// gone. What is only written is left: nobody's backward comes there.
    void refuse_gradients_kept() const {
        for (const GraphValue& value : graph_.values) {
            for (int id : value.tensors) {
                const GraphTensor& tensor = graph_.tensors[static_cast<size_t>(id)];
                if (tensor.parameter >= 0 && !tensor.gradient_flips.empty()) refuse_readers(tensor, id, value);
            }
        }
    }

    /// Of a copy those who read it (jit_written_copies).
    void refuse_readers(const GraphTensor& state, int tensor, const GraphValue& value) const {
        for (int op : value.uses) {
            if (op <= state.gradient_flips.front()) continue;
            const GraphOp& reader = graph_.ops[static_cast<size_t>(op)];
            if (reader.kind == "vpp::copy_written") {
                const GraphValue& copy = graph_.values[static_cast<size_t>(reader.outputs.front())];
                refuse_readers(state, copy.tensors.front(), copy);
            } else if (makes_with_gradient(op, tensor)) {
                refuse_gradient_kept(state, op);
            }
        }
    }

    /// Whether an op makes another tensor than `tensor` that has a gradient.
    bool makes_with_gradient(int op, int tensor) const {
        for (int value : graph_.ops[static_cast<size_t>(op)].outputs) {
            for (int made : graph_.values[static_cast<size_t>(value)].tensors) {
                if (made != tensor && graph_.tensors[static_cast<size_t>(made)].requires_grad) return true;
            }
        }
        return false;
    }

    [[noreturn]] void refuse_gradient_kept(const GraphTensor& tensor, int reader) const {
        const GraphParameter& parameter = graph_.parameters[static_cast<size_t>(tensor.parameter)];
        const auto node_of = [&](int op) { return jit_.ops[static_cast<size_t>(op)].node; };
        throw Error(ErrorKind::BadData,
                    op_text(jit_, node_of(tensor.gradient_flips.front())) + ": forward writes values with a gradient " +
                        "into '" + parameter.name + "', which has none of its own, and reads it afterwards (" +
                        op_text(jit_, node_of(reader)) +
                        "): the next microbatch would go on with it; write value.detach(), as a traced model does not "
                        "know of torch.no_grad, or script the model");
    }

    void add_model_outputs() {
        const size_t num_outputs = jit_.outputs.size(), num_tallies = jit_.tallies.size();
        if (num_outputs + num_tallies == 0) return;
        const GraphValue& tuple = graph_.values[static_cast<size_t>(graph_.ops.back().outputs[0])];
        check(tuple.tensors.size() == num_outputs + num_tallies, "the last op gathers the model's outputs");
        for (size_t i = 0; i < num_outputs; ++i) {
            const std::string& name = jit_.outputs[i].name;
            const GraphTensor& tensor = graph_.tensors[static_cast<size_t>(tuple.tensors[i])];
            if (!tensor.travels || tensor.is_complex) {
                throw Error(ErrorKind::BadData, "the output '" + name +
                                                    "' of the model is no dense tensor of real "
                                                    "numbers; torch.view_as_real and to_dense() make it one");
            }
            graph_.outputs.push_back({name, tuple.tensors[i]});
        }
        for (size_t i = 0; i < num_tallies; ++i) {
            graph_.tallies.push_back({jit_.tallies[i].name, tuple.tensors[num_outputs + i]});
        }
    }

    void check_loss() const {
        const GraphValue& loss = graph_.values[static_cast<size_t>(graph_.loss)];
        const GraphTensor* tensor = graph_.tensor_of(graph_.loss);
        const bool is_real = tensor && tensor->travels && is_floating(tensor->dtype) && !tensor->is_complex;
        if (is_real && num_elements(tensor->shape) == 1) return;
        throw Error(ErrorKind::BadData,
                    "the loss must be one floating-point number (got " + (tensor ? tensor->type_text() : loss.type) +
                        "); add a [loss] section, or set model.loss_output to the output that is the loss");
    }

    const JitGraph& jit_;
    const AliasFacts& aliases_;
    const MemoryFamilies families_;
    const ProbeResult& probe_;
    const JitValues& values_;
    Graph graph_;
    std::unordered_map<const Value*, int> index_;
    std::unordered_map<const void*, int> tensor_of_;
    std::unordered_set<const void*> storages_;
};

}  // namespace

JitValues list_values(const JitGraph& jit) {
    JitValues values;
    for (const JitParameter& parameter : jit.parameters) {
        if (parameter.value) values.push_back(parameter.value);
    }
    for (const JitInput& input : jit.inputs) {
        if (input.value->hasUses()) values.push_back(input.value);
    }
    for (const JitOp& op : jit.ops) values.insert(values.end(), op.node->outputs().begin(), op.node->outputs().end());
    return values;
}

Graph build_graph(const JitGraph& jit, const AliasFacts& aliases, const ProbeResult& probe, const JitValues& values) {
    return GraphBuilder(jit, aliases, probe, values).build();
}

}  // namespace vpp
