#include "stage/segment.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones_like.h>
#include <torch/csrc/autograd/variable.h>

#include <optional>

#include "base/error.hpp"
#include "stage/input_node.hpp"

namespace vpp {

namespace {

/// Whether nobody else has it, as autograd asks before it adds to a gradient in its memory.
bool is_own(const at::Tensor& gradient) {
    return gradient.is_non_overlapping_and_dense() && gradient.use_count() == 1 && gradient.storage().use_count() == 1;
}

[[noreturn]] void refuse_constant_loss() {
    throw Error(ErrorKind::BadData,
                "the loss of this microbatch has no gradient, since nothing that is trained went into it, and backward "
                "cannot begin there (PyTorch's does not either); add 0 * outputs.sum() to it, or leave such samples "
                "out");
}

}  // namespace

Segment::Segment(const Graph& graph, const Split& split, int index, Source& source, const Weights& weights,
                 const SegmentOptions& options)
    : graph_(graph),
      split_(split),
      index_(index),
      options_(options),
      io_(find_segment_io(graph, split, index)),
      runner_(graph, split, index, io_, source, weights, options.training),
      turns_(runner_.trained()) {
    if (!split.segments[static_cast<size_t>(index)].recompute) options_.recomputed_microbatches = 0;
    // Who reads what he writes cannot run a second time, as a recorded microbatch may have to before its backward.
    const bool can_run_again = !options.training || !runner_.reads_what_it_writes();
    if (options.recorder && can_run_again) recordings_ = make_recordings(source.device());
}

Segment::~Segment() = default;

std::unique_ptr<Recordings> Segment::make_recordings(at::Device device) {
    SegmentOps ops;
    ops.forward = [this](Microbatch& now, bool is_recomputed) { run_forward(now, is_recomputed); };
    ops.backward = [this](Microbatch& now) { run_backward(now); };
    ops.input_gradients = [this](Microbatch& now) { run_input_gradients(now); };
    ops.weight_gradients = [this](Microbatch& now) { run_weight_gradients(now); };
    ops.save = [this](const PassInputs& inputs) { return runner_.save(inputs); };
    ops.writes = [this](int tensor) { return runner_.writes(tensor); };
    return std::make_unique<Recordings>(device, options_.recorder,
                                        options_.training ? runner_.trained() : std::vector<at::Tensor>(),
                                        runner_.parameters(), std::move(ops));
}

void Segment::begin_step(const at::Tensor& loss_factor, bool may_record, OpByOpBytes by_op) {
    turns_.begin_step();
    runner_.begin_step();
    loss_factor_ = recordings_ ? recordings_->begin_step(loss_factor, may_record, by_op) : loss_factor;
}

Microbatch& Segment::state(int microbatch) {
    return microbatches_[microbatch];
}

void Segment::set_input(int microbatch, int input, at::Tensor tensor) {
    const int value = graph_.inputs[static_cast<size_t>(input)].value;
    check(value >= 0, "only inputs that the model uses are set");
    state(microbatch).inputs.tensors[graph_.values[static_cast<size_t>(value)].tensors[0]] = std::move(tensor);
}

void Segment::receive_tensor(int microbatch, const Edge& edge, at::Tensor tensor, bool requires_grad) {
    if (options_.training && requires_grad && !edge.has_gradient) {
        throw Error(ErrorKind::BadData,
                    "the value '" + edge.name + "' carries gradient, other than when the model was prepared");
    }
    PassInputs& inputs = state(microbatch).inputs;
    inputs.tensors[edge.tensor] = std::move(tensor);
    if (options_.training && !requires_grad && edge.has_gradient) inputs.without_gradient.insert(edge.tensor);
}

void Segment::receive_values(int microbatch, const Edge& edge, std::vector<c10::IValue> values) {
    check(values.size() == edge.values.size(), "a bundle holds the values of its edge");
    for (size_t i = 0; i < values.size(); ++i) state(microbatch).inputs.values[edge.values[i]] = std::move(values[i]);
}

void Segment::forward(int microbatch, uint64_t key) {
    Microbatch& now = state(microbatch);
    now.inputs.key = key;
    if (!is_recorded()) return run_forward(now, is_recomputed(microbatch));
    run_model([&] {
        if (options_.training)
            recordings_->forward(microbatch, now, is_recomputed(microbatch));
        else
            recordings_->evaluate(now);
    });
}

void Segment::run_forward(Microbatch& now, bool recompute) {
    if (recompute) now.saved = runner_.save(now.inputs);
    // What a model writes into its buffers in evaluation goes to copies.
    Pass pass = runner_.run(options_.training ? std::move(now.inputs) : runner_.save(now.inputs));
    now.inputs = {};
    if (io_.makes_loss) now.loss = pass.loss.detach().clone();
    now.outputs = std::move(pass.outputs);
    keep_exports(now, pass, recompute || !options_.training);
    if (options_.training && !recompute) now.pass = std::move(pass);
}

/// What others need stays until they have taken it; the rest lives on only where the autograd graph holds it.
void Segment::keep_exports(Microbatch& now, Pass& pass, bool without_graph) const {
    for (int edge_id : io_.exports) {
        const Edge& edge = split_.edges[static_cast<size_t>(edge_id)];
        if (edge.tensor >= 0) ++now.pending_tensors[edge.tensor];
        for (int value : edge.values) ++now.pending_values[value];
    }
    for (const auto& [id, count] : now.pending_tensors) {
        const at::Tensor& tensor = pass.tensors.at(id);
        now.tensors[id] = without_graph ? tensor.detach().set_requires_grad(tensor.requires_grad()) : tensor;
    }
    for (const auto& [value, count] : now.pending_values) now.values[value] = pass.values.at(value);
    pass.tensors.clear();
    pass.values.clear();
}

at::Tensor Segment::take_tensor(int microbatch, const Edge& edge) {
    Microbatch& now = state(microbatch);
    at::Tensor tensor = now.tensors.at(edge.tensor);
    if (--now.pending_tensors.at(edge.tensor) == 0) {
        now.tensors.erase(edge.tensor);
        now.pending_tensors.erase(edge.tensor);
    }
    release_if_done(microbatch);
    return tensor;
}

std::vector<c10::IValue> Segment::take_values(int microbatch, const Edge& edge) {
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

at::Tensor Segment::take_loss(int microbatch) {
    at::Tensor loss = std::move(state(microbatch).loss);
    release_if_done(microbatch);
    return loss;
}

std::vector<at::Tensor> Segment::take_outputs(int microbatch) {
    std::vector<at::Tensor> outputs = std::exchange(state(microbatch).outputs, {});
    release_if_done(microbatch);
    return outputs;
}

void Segment::release_if_done(int microbatch) {
    if (state(microbatch).is_done()) microbatches_.erase(microbatch);
}

void Segment::add_gradient(int microbatch, const Edge& edge, at::Tensor gradient) {
    Microbatch& now = state(microbatch);
    at::Tensor& place = edge.is_tied() ? now.tied_arrived[edge.parameter] : now.arrived[edge.tensor];
    if (!place.defined())
        place = std::move(gradient);
    else if (gradient.defined())
        place = is_own(place) ? place.add_(gradient) : place + gradient;
}

/// The graph of a microbatch: as forward left it, or made again.
Pass Segment::take_pass(Microbatch& now) const {
    Pass pass;
    if (now.saved) {
        pass = runner_.run(*std::exchange(now.saved, std::nullopt));
        pass.tensors.clear();
        pass.values.clear();
    } else {
        check(now.pass.has_value(), "a backward has a forward before it");
        pass = *std::exchange(now.pass, std::nullopt);
    }
    return pass;
}

/// Promotes a loss of less than float32 to that, as GradScaler does.
at::Tensor Segment::factor_for(const at::Tensor& loss) const {
    return loss_factor_.to(loss.scalar_type() == at::kDouble ? loss_factor_.scalar_type() : at::kFloat);
}

BackwardRoots Segment::take_roots(Microbatch& now, const Pass& pass) const {
    BackwardRoots roots;
    if (pass.loss.defined()) {
        if (!pass.loss.requires_grad()) refuse_constant_loss();
        const at::AutoGradMode grad_mode(true);
        at::Tensor scaled = at::mul(pass.loss, options_.loss_scale);
        if (loss_factor_.defined()) scaled = at::mul(scaled, factor_for(scaled));
        roots.add(torch::autograd::impl::gradient_edge(scaled), at::ones_like(scaled));
    }
    for (auto& [tensor, gradient] : now.arrived) {
        if (gradient.defined()) roots.add(pass.gradient_edges.at(tensor), std::move(gradient));
    }
    now.arrived.clear();
    return roots;
}

BackwardRoots Segment::take_tied_roots(Microbatch& now, const Pass& pass) const {
    BackwardRoots roots;
    for (auto& [parameter, gradient] : now.tied_arrived) {
        roots.add(pass.tied_edges.at(parameter), std::move(gradient));
    }
    now.tied_arrived.clear();
    return roots;
}

void Segment::keep_input_gradients(Microbatch& now, const Pass& pass, const std::vector<at::Tensor>& gradients) {
    for (const auto& [tensor, slot] : pass.input_slots) now.input_gradients[tensor] = gradients[slot];
    for (int tensor : pass.without_gradient) now.input_gradients[tensor] = at::Tensor();
}

/// What a pass that ended in parameters gave for copies of tied ones leaves the segment.
void Segment::keep_tied_gradients(Microbatch& now, const Pass& pass) {
    for (const auto& [parameter, slot] : pass.copy_slots) {
        now.tied_gradients[parameter] = pass.copies->gradients()[slot];
    }
}

void Segment::backward(int microbatch) {
    Microbatch& now = state(microbatch);
    run_model([&] {
        turns_.run(microbatch, [&] { is_recorded() ? recordings_->backward(microbatch, now) : run_backward(now); });
    });
    release_if_done(microbatch);
}

void Segment::run_backward(Microbatch& now) const {
    Pass pass = take_pass(now);
    BackwardRoots roots = take_roots(now, pass);
    roots.add(take_tied_roots(now, pass));
    pass.loss.reset();
    vpp::run_backward(std::move(roots));
    keep_tied_gradients(now, pass);
    keep_input_gradients(now, pass, pass.inputs->gradients());
}

void Segment::input_gradients(int microbatch) {
    Microbatch& now = state(microbatch);
    run_model([&] { is_recorded() ? recordings_->input_gradients(microbatch, now) : run_input_gradients(now); });
}

void Segment::run_input_gradients(Microbatch& now) const {
    Pass pass = take_pass(now);
    BackwardRoots roots = take_roots(now, pass);
    pass.loss.reset();
    const auto gradients = now.split.emplace().run_inputs(std::move(roots), pass.inputs);
    keep_input_gradients(now, pass, gradients);
    pass.gradient_edges.clear();
    pass.input_slots.clear();
    pass.inputs.reset();
    now.pass = std::move(pass);
}

void Segment::weight_gradients(int microbatch) {
    Microbatch& now = state(microbatch);
    run_model([&] {
        turns_.run(microbatch,
                   [&] { is_recorded() ? recordings_->weight_gradients(microbatch, now) : run_weight_gradients(now); });
    });
    release_if_done(microbatch);
}

void Segment::run_weight_gradients(Microbatch& now) const {
    check(now.split.has_value(), "W comes after I");
    const Pass pass = take_pass(now);
    SplitBackward split = *std::exchange(now.split, std::nullopt);
    split.run_weights(take_tied_roots(now, pass));
    keep_tied_gradients(now, pass);
}

at::Tensor Segment::take_gradient(int microbatch, const Edge& edge) {
    Microbatch& now = state(microbatch);
    std::map<int, at::Tensor>& gradients = edge.is_tied() ? now.tied_gradients : now.input_gradients;
    const auto found = gradients.find(edge.is_tied() ? edge.parameter : edge.tensor);
    check(found != gradients.end(), "a gradient is taken once, after it was made");
    at::Tensor gradient = std::move(found->second);
    gradients.erase(found);
    release_if_done(microbatch);
    return gradient;
}

}  // namespace vpp
