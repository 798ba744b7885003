#include "stage/recording.hpp"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/scalar_tensor.h>

#include "device/memory_begin.hpp"
#include "device/memory_meter.hpp"
#include "device/repeated_elements.hpp"
#include "graph/ivalue_tensors.hpp"
#include "stage/not_recordable.hpp"

namespace vpp {

namespace {

at::Tensor place_for(const TensorForm& form, at::Device device) {
    if (form.host_number) return at::scalar_tensor(*form.host_number, form.dtype);
    if (!form.is_plain) throw NotRecordable{"a value is a tensor of the host, or sparse"};
    return empty_beginning_at(form.begin_bytes, form.sizes, form.strides, at::TensorOptions(form.dtype).device(device));
}

std::map<int, at::Tensor> places_for(const std::map<int, std::optional<TensorForm>>& forms, at::Device device) {
    std::map<int, at::Tensor> places;
    for (const auto& [id, form] : forms) places[id] = form ? place_for(*form, device) : at::Tensor();
    return places;
}

void fill(const std::map<int, at::Tensor>& places, const std::map<int, at::Tensor>& from) {
    for (const auto& [id, place] : places) {
        if (place.defined()) without_repeats(place).copy_(without_repeats(from.at(id).detach()));
    }
}

at::Tensor copy_of(const at::Tensor& made) {
    if (!made.defined()) return made;
    at::Tensor copy = copy_beginning_alike(without_repeats(made.detach()));
    if (copy.sizes() != made.sizes()) copy = copy.expand(made.sizes()).detach();
    return copy.set_requires_grad(made.requires_grad());
}

std::map<int, at::Tensor> copies_of(const std::map<int, at::Tensor>& made) {
    std::map<int, at::Tensor> copies;
    for (const auto& [id, tensor] : made) copies[id] = copy_of(tensor);
    return copies;
}

/// The same numbers for who does not keep the card's memory in which they are.
at::Tensor lent(const at::Tensor& tensor) {
    if (!tensor.defined() || tensor.is_cpu() || tensor.layout() != at::kStrided) return tensor;
    if (tensor.is_conj() || tensor.is_neg()) return tensor;
    const at::Tensor numbers = at::for_blob(tensor.data_ptr(), tensor.sizes())
                                   .strides(tensor.strides())
                                   .options(tensor.options())
                                   .target_device(tensor.device())
                                   .make_tensor();
    return numbers.set_requires_grad(tensor.requires_grad());
}

void lend(std::map<int, at::Tensor>& tensors) {
    for (auto& [id, tensor] : tensors) tensor = lent(tensor);
}

/// Of a device, while this lives.
class TakenMemory {
  public:
    explicit TakenMemory(at::Device device) : meter_(device), before_(meter_.now()) { meter_.restart_peak(); }
    int64_t bytes() const { return meter_.now() - before_; }
    int64_t most_bytes() const { return meter_.peak() - before_; }

  private:
    MemoryMeter meter_;
    int64_t before_;
};

void refuse_sparse(const at::Tensor& made) {
    if (made.layout() != at::kStrided) throw NotRecordable{"a value is sparse"};
}

/// Without the autograd graph that made it.
at::Tensor plain_of(const at::Tensor& tensor) {
    return tensor.defined() ? tensor.detach().set_requires_grad(tensor.requires_grad()) : tensor;
}

}  // namespace

Recording::Recording(MicrobatchForm form, at::Device device, SharedRecorder& shared, GradientSums& sums,
                     const SegmentOps& ops)
    : form_(std::move(form)),
      device_(device),
      shared_(shared),
      forward_recorder_(form_.is_recomputed || form_.is_evaluated ? shared.get() : make_card_recorder(device)),
      backward_recorder_(form_.is_recomputed && form_.is_split ? make_card_recorder(device) : forward_recorder_),
      sums_(sums),
      randomness_(device) {
    Microbatch now;
    if (form_.is_evaluated) {
        share([&] { record_forward(now, ops); });
    } else if (form_.is_recomputed) {
        share([&] { record_forward(now, ops); });
        form_.is_split ? keep([&] { record_halves(now, ops); }) : share([&] { record_backward(now, ops); });
    } else {
        keep([&] {
            record_forward(now, ops);
            form_.is_split ? record_halves(now, ops) : record_backward(now, ops);
        });
    }
}

/// What is recorded in memory of its own.
void Recording::keep(const std::function<void()>& record) {
    const TakenMemory taken(device_);
    record();
    bytes_ += taken.most_bytes();
}

/// What is recorded in memory that is for what others record too: what comes is copied there right before a replay, and
/// what it leaves from there right behind it.
void Recording::share(const std::function<void()>& record) {
    const TakenMemory taken(device_);
    record();
    lend_all();
    bytes_ += taken.bytes();
    shared_.note_work(taken.most_bytes() - taken.bytes());
}

void Recording::forward(Microbatch& now) {
    take_inputs(inputs_, now);
    if (!form_.is_recomputed) now.inputs = {};
    forward_->replay();
    now.tensors = copies_of(made_.tensors);
    for (const auto& [value, made] : made_.values) now.values[value] = map_tensors(made, plain_of);
    now.pending_tensors = made_.pending_tensors;
    now.pending_values = made_.pending_values;
    now.loss = copy_of(made_.loss);
    for (const at::Tensor& output : made_.outputs) now.outputs.push_back(copy_of(output));
}

void Recording::backward(Microbatch& now) {
    take_arrived(now);
    take_tied(now);
    sums_.add(given_, [&] { backward_->replay(); });
    now.input_gradients = copies_of(made_.input_gradients);
    now.tied_gradients = copies_of(made_.tied_gradients);
}

void Recording::input_gradients(Microbatch& now) {
    take_arrived(now);
    input_gradients_->replay();
    now.input_gradients = copies_of(made_.input_gradients);
}

void Recording::weight_gradients(Microbatch& now) {
    take_tied(now);
    sums_.add(given_, [&] { weight_gradients_->replay(); });
    now.tied_gradients = copies_of(made_.tied_gradients);
}

PassInputs Recording::input_places() const {
    PassInputs places;
    for (const auto& [id, input] : form_.inputs) places.tensors[id] = place_for(input, device_);
    places.values = form_.values;
    places.without_gradient = form_.without_gradient;
    return places;
}

void Recording::record_forward(Microbatch& now, const SegmentOps& ops) {
    const auto run = [&] {
        inputs_ = input_places();
        now.inputs = inputs_;
        for (auto& [id, tensor] : now.inputs.tensors) {
            tensor = ops.writes(id) ? copy_beginning_alike(tensor) : tensor.detach();
        }
        ops.forward(now, /*is_recomputed=*/false);
    };
    randomness_.record([&] { forward_ = forward_recorder_->record(run); });
    if (form_.is_recomputed) now.pass.reset();
    made_.tensors = std::move(now.tensors);
    for (const auto& [value, made] : now.values) made_.values[value] = map_tensors(made, plain_of);
    now.values.clear();
    made_.pending_tensors = std::move(now.pending_tensors);
    made_.pending_values = std::move(now.pending_values);
    made_.loss = std::move(now.loss);
    made_.outputs = std::move(now.outputs);
    for (const at::Tensor& output : made_.outputs) refuse_sparse(output);
    for (auto& [id, tensor] : made_.tensors) {
        refuse_sparse(tensor);
        tensor = plain_of(tensor);
    }
}

/// What backward begins with: the gradients that arrive, and what forward was given where its ops run once more.
void Recording::arrive(Microbatch& now, const SegmentOps& ops) {
    now.arrived = arrived_ = places_for(form_.arrived, device_);
    // Autograd adds in their memory, as it does op by op; but halves may be run again from what arrived.
    if (form_.tied_arrived.empty()) lend(arrived_);
    if (!form_.is_recomputed) return;
    inputs_again_ = input_places();
    now.saved = ops.save(inputs_again_);
}

void Recording::arrive_tied(Microbatch& now) {
    now.tied_arrived = tied_arrived_ = places_for(form_.tied_arrived, device_);
}

void Recording::record_backward(Microbatch& now, const SegmentOps& ops) {
    record_again([&] {
        backward_ = record_sums([&] {
            arrive(now, ops);
            arrive_tied(now);
            ops.backward(now);
        });
    });
    made_.input_gradients = std::move(now.input_gradients);
    made_.tied_gradients = std::move(now.tied_gradients);
}

void Recording::record_halves(Microbatch& now, const SegmentOps& ops) {
    record_again([&] {
        input_gradients_ = backward_recorder_->record([&] {
            arrive(now, ops);
            ops.input_gradients(now);
        });
    });
    weight_gradients_ = record_sums([&] {
        arrive_tied(now);
        ops.weight_gradients(now);
    });
    made_.input_gradients = std::move(now.input_gradients);
    made_.tied_gradients = std::move(now.tied_gradients);
}

/// With the seeds of what runs once more.
void Recording::record_again(const std::function<void()>& ops) {
    form_.is_recomputed ? randomness_.record(ops) : ops();
}

/// Ops that add into `.grad`.
std::unique_ptr<CardGraph> Recording::record_sums(const std::function<void()>& ops) {
    std::unique_ptr<CardGraph> graph;
    given_ = sums_.record([&] { graph = backward_recorder_->record(ops); });
    return graph;
}

void Recording::lend_all() {
    for (auto* tensors : {&inputs_.tensors, &inputs_again_.tensors, &arrived_, &tied_arrived_, &made_.tensors,
                          &made_.input_gradients, &made_.tied_gradients}) {
        lend(*tensors);
    }
    made_.loss = lent(made_.loss);
    for (at::Tensor& output : made_.outputs) output = lent(output);
    for (auto& [value, made] : made_.values) made = map_tensors(made, lent);
}

/// What the ops that are recorded next read, and the seeds of the random ones.
void Recording::take_inputs(PassInputs& places, const Microbatch& now) {
    fill(places.tensors, now.inputs.tensors);
    places.key = now.inputs.key;
    randomness_.set_key(places.key);
}

void Recording::take_arrived(Microbatch& now) {
    if (form_.is_recomputed) take_inputs(inputs_again_, now);
    fill(arrived_, now.arrived);
    now.arrived.clear();
}

void Recording::take_tied(Microbatch& now) {
    fill(tied_arrived_, now.tied_arrived);
    now.tied_arrived.clear();
}

}  // namespace vpp
