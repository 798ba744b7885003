#include "stage/stage.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones_like.h>
#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <optional>

#include "base/error.hpp"
#include "graph/ivalue_tensors.hpp"
#include "stage/input_node.hpp"

namespace vpp {

/// What lies between forward and backward of one microbatch.
struct Stage::Microbatch {
    std::map<int, at::Tensor> tensors;   ///< inputs, received, then exported ones
    std::map<int, c10::IValue> values;   ///< received or exported containers and plain values
    std::map<int, int> pending_exports;  ///< by tensor: edges that have not taken it
    std::map<int, int> pending_values;   ///< by value
    std::shared_ptr<InputNode> inputs = std::make_shared<InputNode>();
    std::map<int, uint32_t> input_slots;                  ///< received tensor -> slot of `inputs`
    std::map<int, torch::autograd::Edge> gradient_edges;  ///< by tensor: where an arriving gradient enters
    std::map<int, at::Tensor> arrived;                    ///< by tensor
    at::Tensor scaled_loss;
    double loss = 0;

    // What is left behind I or B.
    std::shared_ptr<InputNode> copies = std::make_shared<InputNode>();  ///< of tied parameters
    std::map<int, uint32_t> copy_slots;                                 ///< parameter -> slot of `copies`
    std::map<int, torch::autograd::Edge> tied_edges;                    ///< by parameter
    std::map<int, at::Tensor> tied_arrived;                             ///< by parameter
    std::map<int, at::Tensor> input_gradients;                          ///< by tensor
    std::map<int, at::Tensor> tied_gradients;                           ///< by parameter
    std::optional<SplitBackward> waits_for_w;

    bool is_done() const { return input_gradients.empty() && tied_gradients.empty() && !waits_for_w; }
    void forget_forward() {
        Microbatch rest;
        rest.copies = std::move(copies);
        rest.copy_slots = std::move(copy_slots);
        rest.tied_edges = std::move(tied_edges);
        rest.tied_arrived = std::move(tied_arrived);
        *this = std::move(rest);
    }
};

namespace {

[[noreturn]] void not_as_probed(const GraphValue& value, const std::string& what) {
    throw Error(ErrorKind::BadData,
                "the value '" + value.name + "' is not as it was when the model was prepared: " + what +
                    "; a model whose values change their form between microbatches cannot be cut there");
}

/// Runs LibTorch on the model's behalf: what it throws is the model's fault, or a lack of memory.
template <typename Call>
void run_model(const Call& call) {
    try {
        call();
    } catch (const Error&) {
        throw;
    } catch (const std::bad_alloc&) {
        throw;
    } catch (const std::exception& error) {
        const std::string text = error.what();
        if (text.find("can't allocate memory") != std::string::npos) throw std::bad_alloc();
        throw Error(ErrorKind::BadData, "the model fails: " + text);
    }
}

bool holds(const std::vector<int>& list, int entry) {
    return std::find(list.begin(), list.end(), entry) != list.end();
}

/// The parameters whose `.grad` this stage writes.
std::vector<at::Tensor> trained(const StageIo& io, const std::vector<at::Tensor>& parameters) {
    std::vector<at::Tensor> found;
    for (size_t i = 0; i < parameters.size(); ++i) {
        if (parameters[i].requires_grad() && !holds(io.tied_copies, io.parameters[i])) found.push_back(parameters[i]);
    }
    return found;
}

std::vector<at::Tensor> pick(const Weights& weights, const std::vector<int>& parameters) {
    std::vector<at::Tensor> picked;
    for (int parameter : parameters) picked.push_back(weights.at(parameter));
    return picked;
}

}  // namespace

Stage::Stage(const Graph& graph, const Split& split, int index, Source& source, const Weights& weights,
             const StageOptions& options)
    : graph_(graph),
      split_(split),
      index_(index),
      options_(options),
      io_(find_stage_io(graph, split, index)),
      parameters_(pick(weights, io_.parameters)),
      executable_(
          source.executable(split.stages[static_cast<size_t>(index)].ops, io_.live_ins, io_.parameters, io_.live_outs)),
      turns_(trained(io_, parameters_)) {
    for (size_t i = 0; i < graph.tensors.size(); ++i) {
        if (graph.tensors[i].parameter >= 0) tensor_of_parameter_[graph.tensors[i].parameter] = static_cast<int>(i);
    }
}

Stage::~Stage() = default;

Stage::Microbatch& Stage::state(int microbatch) {
    return microbatches_[microbatch];
}

void Stage::set_input(int microbatch, int input, at::Tensor tensor) {
    const int value = graph_.inputs[static_cast<size_t>(input)].value;
    check(value >= 0, "only inputs that the model uses are set");
    state(microbatch).tensors[graph_.values[static_cast<size_t>(value)].tensors[0]] = std::move(tensor);
}

void Stage::receive_tensor(int microbatch, const Edge& edge, at::Tensor tensor, bool requires_grad) {
    Microbatch& now = state(microbatch);
    if (options_.training) {
        if (requires_grad != edge.has_gradient) {
            throw Error(ErrorKind::BadData, "the value '" + edge.name + "' " +
                                                (requires_grad ? "carries" : "carries no") +
                                                " gradient, other than when the model was prepared");
        }
        if (requires_grad) now.input_slots[edge.tensor] = now.inputs->attach(tensor);
    }
    now.tensors[edge.tensor] = std::move(tensor);
}

void Stage::receive_values(int microbatch, const Edge& edge, std::vector<c10::IValue> values) {
    check(values.size() == edge.values.size(), "a bundle holds the values of its edge");
    for (size_t i = 0; i < values.size(); ++i) state(microbatch).values[edge.values[i]] = std::move(values[i]);
}

/// A parameter as the ops see it: a trained one of an earlier stage ends at a node of its own, not at its `.grad`.
at::Tensor Stage::bind_parameter(Microbatch& now, size_t index) const {
    const int parameter = io_.parameters[index];
    at::Tensor tensor = parameters_[index];
    if (options_.training && holds(io_.tied_copies, parameter)) {
        tensor = tensor.detach();
        now.copy_slots[parameter] = now.copies->attach(tensor);
    }
    if (options_.training && holds(io_.tied_arrives, parameter)) {
        now.tied_edges[parameter] = torch::autograd::impl::gradient_edge(tensor);
    }
    return tensor;
}

std::vector<c10::IValue> Stage::bind_arguments(Microbatch& now) const {
    std::vector<at::Tensor> parameters;
    for (size_t i = 0; i < parameters_.size(); ++i) {
        parameters.push_back(bind_parameter(now, i));
        now.tensors[tensor_of_parameter_.at(io_.parameters[i])] = parameters.back();
    }
    std::vector<c10::IValue> arguments;
    for (int value : io_.live_ins) {
        const GraphValue& entry = graph_.values[static_cast<size_t>(value)];
        if (entry.is_tensor) {
            arguments.emplace_back(now.tensors.at(entry.tensors[0]));
            continue;
        }
        size_t next = 0;
        arguments.push_back(map_tensors(now.values.at(value), [&](const at::Tensor&) {
            if (next >= entry.tensors.size()) not_as_probed(entry, "it holds more tensors");
            return now.tensors.at(entry.tensors[next++]);
        }));
    }
    for (at::Tensor& parameter : parameters) arguments.emplace_back(std::move(parameter));
    return arguments;
}

void Stage::forward(int microbatch, uint64_t key) {
    Microbatch& now = state(microbatch);
    const at::AutoGradMode grad_mode(options_.training);
    std::vector<c10::IValue> results;
    run_model([&] { results = executable_->run(bind_arguments(now), key); });
    keep_results(now, std::move(results));
    keep_edges(now);
}

/// Sorts the live-outs into tensors and values, and checks that values that were one tensor still are, and others not.
void Stage::keep_results(Microbatch& now, std::vector<c10::IValue> results) {
    std::map<const void*, int> known;
    for (int tensor : io_.received) known.emplace(now.tensors.at(tensor).unsafeGetTensorImpl(), tensor);
    std::map<int, at::Tensor> kept;
    for (size_t i = 0; i < results.size(); ++i) {
        const GraphValue& value = graph_.values[static_cast<size_t>(io_.live_outs[i])];
        const std::vector<at::Tensor> tensors = tensors_in(results[i]);
        if (tensors.size() != value.tensors.size()) not_as_probed(value, "it holds another number of tensors");
        for (size_t k = 0; k < tensors.size(); ++k) {
            const auto [it, is_new] = known.emplace(tensors[k].unsafeGetTensorImpl(), value.tensors[k]);
            if (it->second != value.tensors[k]) not_as_probed(value, "it is the same tensor as another value");
            const auto before = kept.find(value.tensors[k]);
            const bool other = before != kept.end() && !before->second.is_same(tensors[k]);
            if (other) not_as_probed(value, "it is no longer the same tensor as another value");
            kept[value.tensors[k]] = tensors[k];
        }
        if (!value.is_tensor) now.values[io_.live_outs[i]] = std::move(results[i]);
    }
    if (io_.makes_loss) {
        const at::Tensor loss = kept.at(graph_.values[static_cast<size_t>(graph_.loss)].tensors[0]);
        now.loss = loss.item<double>();
        if (options_.training) now.scaled_loss = at::mul(loss, options_.loss_scale);
    }
    for (int edge_id : io_.exports) {
        const Edge& edge = split_.edges[static_cast<size_t>(edge_id)];
        if (edge.tensor >= 0) ++now.pending_exports[edge.tensor];
        for (int value : edge.values) ++now.pending_values[value];
    }
    for (int tensor : io_.gradient_arrives) kept.emplace(tensor, now.tensors[tensor]);
    for (const auto& [tensor, count] : now.pending_exports) kept.emplace(tensor, now.tensors[tensor]);
    now.tensors = std::move(kept);
}

/// Notes where arriving gradients enter, so that the tensors themselves can go.
void Stage::keep_edges(Microbatch& now) {
    for (int tensor : io_.gradient_arrives) {
        if (!options_.training) break;
        const at::Tensor& kept = now.tensors.at(tensor);
        if (!kept.requires_grad()) {
            throw Error(ErrorKind::BadData, "the value '" + graph_.tensors[static_cast<size_t>(tensor)].name +
                                                "' carries no gradient, other than when the model was prepared");
        }
        now.gradient_edges[tensor] = torch::autograd::impl::gradient_edge(kept);
    }
    for (auto it = now.tensors.begin(); it != now.tensors.end();) {
        it = now.pending_exports.count(it->first) ? std::next(it) : now.tensors.erase(it);
    }
    if (!options_.training) now.inputs.reset();
}

at::Tensor Stage::take_tensor(int microbatch, const Edge& edge) {
    Microbatch& now = state(microbatch);
    at::Tensor tensor = now.tensors.at(edge.tensor);
    if (--now.pending_exports.at(edge.tensor) == 0) now.tensors.erase(edge.tensor);
    release_if_done(microbatch);
    return tensor;
}

std::vector<c10::IValue> Stage::take_values(int microbatch, const Edge& edge) {
    Microbatch& now = state(microbatch);
    std::vector<c10::IValue> values;
    for (int value : edge.values) {
        values.push_back(now.values.at(value));
        if (--now.pending_values.at(value) > 0) continue;
        now.values.erase(value);
        now.pending_values.erase(value);
    }
    release_if_done(microbatch);
    return values;
}

double Stage::take_loss(int microbatch) {
    const double loss = state(microbatch).loss;
    release_if_done(microbatch);
    return loss;
}

/// Without a backward pass nothing else ends a microbatch.
void Stage::release_if_done(int microbatch) {
    const Microbatch& now = state(microbatch);
    if (!options_.training && now.tensors.empty() && now.pending_values.empty()) microbatches_.erase(microbatch);
}

void Stage::add_gradient(int microbatch, const Edge& edge, at::Tensor gradient) {
    Microbatch& now = state(microbatch);
    at::Tensor& place = edge.is_tied() ? now.tied_arrived[edge.parameter] : now.arrived[edge.tensor];
    if (!place.defined())
        place = std::move(gradient);
    else if (gradient.defined())
        place = place + gradient;
}

BackwardRoots Stage::take_roots(Microbatch& now) const {
    BackwardRoots roots;
    if (now.scaled_loss.defined() && now.scaled_loss.requires_grad()) {
        roots.add(torch::autograd::impl::gradient_edge(now.scaled_loss), at::ones_like(now.scaled_loss));
    }
    now.scaled_loss.reset();
    for (auto& [tensor, gradient] : now.arrived) roots.add(now.gradient_edges.at(tensor), std::move(gradient));
    return roots;
}

BackwardRoots Stage::take_tied_roots(Microbatch& now) const {
    BackwardRoots roots;
    for (auto& [parameter, gradient] : now.tied_arrived) roots.add(now.tied_edges.at(parameter), std::move(gradient));
    return roots;
}

/// A pass that ends in parameters; what it gives for copies of tied ones leaves the stage.
void Stage::run_in_turn(int microbatch, const std::function<void()>& pass) {
    run_model([&] { turns_.run(microbatch, pass); });
    Microbatch& now = state(microbatch);
    for (const auto& [parameter, slot] : now.copy_slots) now.tied_gradients[parameter] = now.copies->gradients()[slot];
}

void Stage::backward(int microbatch) {
    Microbatch& now = state(microbatch);
    BackwardRoots roots = take_roots(now);
    roots.add(take_tied_roots(now));
    run_in_turn(microbatch, [&] { run_backward(roots); });
    std::map<int, at::Tensor> input_gradients;
    for (const auto& [tensor, slot] : now.input_slots) input_gradients[tensor] = now.inputs->gradients()[slot];
    Microbatch rest;
    rest.input_gradients = std::move(input_gradients);
    rest.tied_gradients = std::move(now.tied_gradients);
    now = std::move(rest);
    if (now.is_done()) microbatches_.erase(microbatch);
}

void Stage::input_gradients(int microbatch) {
    Microbatch& now = state(microbatch);
    SplitBackward split;
    torch::autograd::variable_list gradients;
    run_model([&] { gradients = split.run_inputs(take_roots(now), now.inputs); });
    const std::map<int, uint32_t> slots = std::move(now.input_slots);
    now.forget_forward();
    for (const auto& [tensor, slot] : slots) now.input_gradients[tensor] = gradients[slot];
    now.waits_for_w = std::move(split);
}

void Stage::weight_gradients(int microbatch) {
    Microbatch& now = state(microbatch);
    check(now.waits_for_w.has_value(), "W comes after I");
    const BackwardRoots tied = take_tied_roots(now);
    run_in_turn(microbatch, [&] { now.waits_for_w->run_weights(tied); });
    now.waits_for_w.reset();
    if (now.is_done()) microbatches_.erase(microbatch);
}

at::Tensor Stage::take_gradient(int microbatch, const Edge& edge) {
    Microbatch& now = state(microbatch);
    std::map<int, at::Tensor>& gradients = edge.is_tied() ? now.tied_gradients : now.input_gradients;
    const auto found = gradients.find(edge.is_tied() ? edge.parameter : edge.tensor);
    check(found != gradients.end(), "a gradient is taken once, after it was made");
    at::Tensor gradient = std::move(found->second);
    gradients.erase(found);
    if (now.is_done()) microbatches_.erase(microbatch);
    return gradient;
}

}  // namespace vpp
