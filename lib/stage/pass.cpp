#include "stage/pass.hpp"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>

#include "base/error.hpp"
#include "device/memory_begin.hpp"
#include "graph/ivalue_tensors.hpp"
#include "graph/torch_errors.hpp"
#include "stage/input_node.hpp"

namespace vpp {

namespace {

/// "'y' of the op aten::contiguous in 'head'".
std::string text_with_maker(const Graph& graph, const std::string& name, int producer) {
    if (producer < 0) return "'" + name + "'";
    const GraphOp& op = graph.ops[static_cast<size_t>(producer)];
    const std::string place = op.module.empty() ? "the model's forward" : "'" + op.module + "'";
    return "'" + name + "' of the op " + op.kind + " in " + place;
}

[[noreturn]] void not_as_probed(const Graph& graph, const GraphValue& value, const std::string& what) {
    throw Error(ErrorKind::BadData,
                "the value " + text_with_maker(graph, value.name, value.producer) +
                    " is not as it was when the model was prepared: " + what +
                    "; a model whose values change their form between microbatches cannot be cut there");
}

/// `is` says how it is with the tensor now.
[[noreturn]] void not_told_apart_as_probed(const Graph& graph, const GraphValue& value, int tensor,
                                           const std::string& is) {
    const GraphTensor& other = graph.tensors[static_cast<size_t>(tensor)];
    not_as_probed(graph, value,
                  is + " the same tensor as " + text_with_maker(graph, other.name, other.producer) +
                      ", most likely since LibTorch laid that out otherwise in memory");
}

/// What is asked of the ops: the live-outs, and behind them what gathers the model's outputs.
std::vector<int> results_of(const SegmentIo& io) {
    std::vector<int> results = io.live_outs;
    if (io.gathered >= 0) results.push_back(io.gathered);
    return results;
}

bool holds(const std::vector<int>& list, int entry) {
    return std::find(list.begin(), list.end(), entry) != list.end();
}

/// Whether ops that do more than write it use it: backward may want what they read. A running mean of a batch norm is
/// only written.
bool is_read_beside_writes(const Graph& graph, int parameter, const std::vector<int>& writers) {
    const std::vector<int>& uses = graph.parameters[static_cast<size_t>(parameter)].uses;
    return !writers.empty() && std::any_of(uses.begin(), uses.end(), [&](int op) {
        const std::string& kind = graph.ops[static_cast<size_t>(op)].kind;
        return !holds(writers, op) || kind == "prim::If" || kind == "prim::Loop";
    });
}

}  // namespace

Pass::Pass() : inputs(std::make_shared<InputNode>()), copies(std::make_shared<InputNode>()) {}

void run_model(const std::function<void()>& call) {
    try {
        call();
    } catch (const Error&) {
        throw;
    } catch (const c10::Error& error) {
        throw_if_known(error);
        throw Error(ErrorKind::BadData, model_failure(error.what_without_backtrace()));
    } catch (const std::exception& error) {
        throw_if_known(error);
        throw Error(ErrorKind::BadData, model_failure(error.what()));
    }
}

PassRunner::PassRunner(const Graph& graph, const Split& split, int segment, const SegmentIo& io, Source& source,
                       const Weights& weights, bool training)
    : graph_(graph),
      io_(io),
      ops_(split.segments[static_cast<size_t>(segment)].ops),
      training_(training),
      executable_(source.executable({ops_.list(), io.live_ins, io.parameters, results_of(io)}, source.device())) {
    for (size_t i = 0; i < graph.tensors.size(); ++i) {
        if (graph.tensors[i].parameter >= 0) tensor_of_parameter_[graph.tensors[i].parameter] = static_cast<int>(i);
    }
    for (int parameter : io.parameters) {
        parameters_.push_back(weights.at(parameter));
        const auto tensor = static_cast<size_t>(tensor_of_parameter_.at(parameter));
        read_beside_writes_.push_back(is_read_beside_writes(graph, parameter, graph.tensors[tensor].writers));
    }
    if (training && !split.segments[static_cast<size_t>(segment)].recompute) share_casts();
}

/// Evaluation keeps nothing for a backward: there a cast is gone behind its op. What is recomputed keeps that of one
/// microbatch and one segment at a time: a copy of all would be more.
void PassRunner::share_casts() {
    for (const CastInput& cast : executable_->cast_inputs()) {
        if (cast.input < io_.live_ins.size()) continue;  // data
        const size_t index = cast.input - io_.live_ins.size();
        const bool is_written = graph_.parameters[static_cast<size_t>(io_.parameters[index])].written;
        if (!is_written) casts_.add(parameters_[index], cast.dtype);
    }
}

std::vector<at::Tensor> PassRunner::trained() const {
    std::vector<at::Tensor> found;
    for (size_t i = 0; i < parameters_.size(); ++i) {
        if (parameters_[i].requires_grad() && !holds(io_.tied_copies, io_.parameters[i])) {
            found.push_back(parameters_[i]);
        }
    }
    return found;
}

bool PassRunner::writes(int tensor) const {
    const std::vector<int>& writers = graph_.tensors[static_cast<size_t>(tensor)].writers;
    return !writers.empty() && writers.back() >= ops_.begin;
}

bool PassRunner::reads_what_it_writes() const {
    return std::find(read_beside_writes_.begin(), read_beside_writes_.end(), true) != read_beside_writes_.end();
}

Pass PassRunner::run(PassInputs inputs) const {
    const at::AutoGradMode grad_mode(training_);
    Pass pass;
    pass.tensors = std::move(inputs.tensors);
    pass.values = std::move(inputs.values);
    pass.without_gradient = std::move(inputs.without_gradient);
    std::vector<c10::IValue> results;
    const WeightCasts::Scope sharing(casts_);
    run_model([&] {
        attach_received(pass);
        results = executable_->run(bind_arguments(pass, inputs), inputs.key);
        keep_written(pass, inputs);
    });
    if (io_.gathered >= 0) pass.outputs = take_outputs(results);
    keep_results(pass, std::move(results));
    if (training_) keep_edges(pass);
    return pass;
}

PassInputs PassRunner::save(const PassInputs& inputs) const {
    PassInputs saved;
    saved.values = inputs.values;
    saved.without_gradient = inputs.without_gradient;
    saved.key = inputs.key;
    for (const auto& [id, tensor] : inputs.tensors) {
        saved.tensors[id] = writes(id) ? copy_beginning_alike(tensor) : tensor.detach();
    }
    for (size_t i = 0; i < parameters_.size(); ++i) {
        const int parameter = io_.parameters[i];
        const bool is_written = graph_.parameters[static_cast<size_t>(parameter)].written;
        if (is_written) saved.old_state[parameter] = copy_beginning_alike(parameters_[i]);
    }
    return saved;
}

void PassRunner::attach_received(Pass& pass) const {
    for (int tensor : io_.received) {
        const bool may = graph_.tensors[static_cast<size_t>(tensor)].requires_grad_at(ops_.begin);
        if (!may || pass.without_gradient.contains(tensor)) continue;
        pass.input_slots[tensor] = pass.inputs->attach(pass.tensors.at(tensor));
    }
}

/// Backward wants what ops read as they read it, and microbatches between would write over it.
bool PassRunner::has_own_memory(size_t index, const PassInputs& inputs) const {
    return training_ && read_beside_writes_[index] && !inputs.old_state.contains(io_.parameters[index]);
}

void PassRunner::keep_written(const Pass& pass, const PassInputs& inputs) const {
    for (size_t i = 0; i < parameters_.size(); ++i) {
        if (!has_own_memory(i, inputs)) continue;
        const int tensor = tensor_of_parameter_.at(io_.parameters[i]);
        parameters_[i].detach().copy_(pass.tensors.at(tensor).detach());
    }
}

/// A parameter as the ops see it: a trained one of an earlier segment ends at a node of its own, not at its `.grad`;
/// one whose old state was kept ends where it does itself.
at::Tensor PassRunner::bind_parameter(Pass& pass, size_t index, const PassInputs& inputs) const {
    const int parameter = io_.parameters[index];
    const at::Tensor& now = parameters_[index];
    const auto old = inputs.old_state.find(parameter);
    at::Tensor tensor = old == inputs.old_state.end() ? now : old->second;
    if (has_own_memory(index, inputs)) tensor = copy_beginning_alike(now);
    if (training_ && holds(io_.tied_copies, parameter)) {
        tensor = tensor.detach();
        pass.copy_slots[parameter] = pass.copies->attach(tensor);
    } else if (training_ && now.requires_grad() && !tensor.is_same(now)) {
        torch::autograd::impl::set_gradient_edge(tensor, torch::autograd::impl::gradient_edge(now));
    }
    if (training_ && holds(io_.tied_arrives, parameter)) {
        pass.tied_edges[parameter] = torch::autograd::impl::gradient_edge(tensor);
    }
    return tensor;
}

std::vector<c10::IValue> PassRunner::bind_arguments(Pass& pass, const PassInputs& inputs) const {
    std::vector<at::Tensor> parameters;
    for (size_t i = 0; i < parameters_.size(); ++i) {
        parameters.push_back(bind_parameter(pass, i, inputs));
        pass.tensors[tensor_of_parameter_.at(io_.parameters[i])] = parameters.back();
    }
    std::vector<c10::IValue> arguments;
    for (int value : io_.live_ins) {
        const GraphValue& entry = graph_.values[static_cast<size_t>(value)];
        if (entry.is_tensor) {
            arguments.emplace_back(pass.tensors.at(entry.tensors[0]));
            continue;
        }
        size_t next = 0;
        arguments.push_back(map_tensors(pass.values.at(value), [&](const at::Tensor&) {
            if (next >= entry.tensors.size()) not_as_probed(graph_, entry, "it holds more tensors");
            return pass.tensors.at(entry.tensors[next++]);
        }));
    }
    for (at::Tensor& parameter : parameters) arguments.emplace_back(std::move(parameter));
    return arguments;
}

std::vector<at::Tensor> PassRunner::take_outputs(std::vector<c10::IValue>& results) const {
    std::vector<at::Tensor> outputs = tensors_in(results.back());
    check(outputs.size() == graph_.outputs.size() + graph_.tallies.size(), "the last op gathers outputs and tallies");
    results.pop_back();
    return outputs;
}

/// Sorts the live-outs into tensors and values, and checks that values that were one tensor still are, and others not;
/// what control flow made may be any (graph/cut_rules.hpp).
void PassRunner::keep_results(Pass& pass, std::vector<c10::IValue> results) const {
    std::map<const void*, int> known;
    std::map<int, at::Tensor> made(pass.tensors.begin(), pass.tensors.end());  // what came in
    for (int tensor : io_.received) {
        if (graph_.tensors[static_cast<size_t>(tensor)].from_branch) continue;
        known.emplace(pass.tensors.at(tensor).unsafeGetTensorImpl(), tensor);
    }
    for (size_t i = 0; i < results.size(); ++i) {
        const GraphValue& value = graph_.values[static_cast<size_t>(io_.live_outs[i])];
        const std::vector<at::Tensor> tensors = tensors_in(results[i]);
        if (tensors.size() != value.tensors.size()) not_as_probed(graph_, value, "it holds another number of tensors");
        for (size_t k = 0; k < tensors.size(); ++k) {
            if (!graph_.tensors[static_cast<size_t>(value.tensors[k])].from_branch) {
                const auto [it, is_new] = known.emplace(tensors[k].unsafeGetTensorImpl(), value.tensors[k]);
                if (it->second != value.tensors[k]) not_told_apart_as_probed(graph_, value, it->second, "it is");
            }
            const auto before = made.find(value.tensors[k]);
            const bool other = before != made.end() && !before->second.is_same(tensors[k]);
            if (other) not_told_apart_as_probed(graph_, value, value.tensors[k], "it is no longer");
            made[value.tensors[k]] = tensors[k];
        }
        if (!value.is_tensor) pass.values[io_.live_outs[i]] = std::move(results[i]);
    }
    for (auto& [id, tensor] : made) pass.tensors[id] = std::move(tensor);
    if (io_.makes_loss) pass.loss = pass.tensors.at(graph_.values[static_cast<size_t>(graph_.loss)].tensors[0]);
}

/// Notes where arriving gradients enter, so that the tensors themselves can go. None arrives for a tensor that needs
/// none this time: its consumers know.
void PassRunner::keep_edges(Pass& pass) const {
    for (int tensor : io_.gradient_arrives) {
        const at::Tensor& kept = pass.tensors.at(tensor);
        if (kept.requires_grad()) pass.gradient_edges[tensor] = torch::autograd::impl::gradient_edge(kept);
    }
}

}  // namespace vpp
