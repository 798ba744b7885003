#include "stage/recordings.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/from_blob.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>

#include "base/random.hpp"
#include "device/card_graph.hpp"
#include "device/card_seeds.hpp"
#include "device/memory_begin.hpp"
#include "device/memory_meter.hpp"
#include "graph/ivalue_tensors.hpp"
#include "graph/model_output.hpp"
#include "graph/seed_listener.hpp"
#include "graph/torch_errors.hpp"

namespace vpp {

namespace {

/// Steps op by op: in the first one libraries start, in the second one memory is measured.
constexpr int kStepsByOp = 2;

/// What a microbatch can be that no recording is made of.
struct NotRecordable {
    std::string reason;
};

/// Each element once, where expanding has repeated some.
at::Tensor without_repeats(at::Tensor tensor) {
    for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
        if (tensor.stride(dim) == 0 && tensor.size(dim) > 1) tensor = tensor.narrow(dim, 0, 1);
    }
    return tensor;
}

TensorForm form_of(const at::Tensor& tensor) {
    if (tensor.layout() != at::kStrided) return {};
    return {tensor.sizes().vec(), tensor.strides().vec(), tensor.scalar_type(), begin_bytes_of(tensor),
            tensor.is_cpu()};
}

/// Which they hold is told by their graph; here another stands for each.
std::map<int, c10::IValue> without_tensors(const std::map<int, c10::IValue>& values) {
    std::map<int, c10::IValue> structures;
    for (const auto& [id, value] : values) {
        structures[id] = map_tensors(value, [](const at::Tensor&) { return at::empty({0}); });
    }
    return structures;
}

std::map<int, TensorForm> forms_of(const std::map<int, at::Tensor>& tensors) {
    std::map<int, TensorForm> forms;
    for (const auto& [id, tensor] : tensors) forms[id] = form_of(tensor);
    return forms;
}

std::map<int, std::optional<TensorForm>> gradient_forms_of(const std::map<int, at::Tensor>& gradients) {
    std::map<int, std::optional<TensorForm>> forms;
    for (const auto& [id, gradient] : gradients) {
        forms[id] = gradient.defined() ? std::optional(form_of(gradient)) : std::nullopt;
    }
    return forms;
}

bool is_same_value(const c10::IValue& one, const c10::IValue& other);

bool are_same_values(c10::ArrayRef<c10::IValue> some, c10::ArrayRef<c10::IValue> others) {
    return std::equal(some.begin(), some.end(), others.begin(), others.end(), is_same_value);
}

/// Tensors inside come by themselves; what is no plain value is like no other.
bool is_same_value(const c10::IValue& one, const c10::IValue& other) {
    if (one.tagKind() != other.tagKind()) return false;
    if (one.isTensor() || one.isNone()) return true;
    if (one.isBool()) return one.toBool() == other.toBool();
    if (one.isInt()) return one.toInt() == other.toInt();
    if (one.isDouble()) return one.toDouble() == other.toDouble();
    if (one.isString()) return one.toStringRef() == other.toStringRef();
    if (one.isDevice()) return one.toDevice() == other.toDevice();
    if (one.isList()) return are_same_values(one.toList().vec(), other.toList().vec());
    if (one.isTuple()) return are_same_values(one.toTupleRef().elements(), other.toTupleRef().elements());
    return false;
}

bool are_same(const std::map<int, c10::IValue>& some, const std::map<int, c10::IValue>& others) {
    return std::equal(some.begin(), some.end(), others.begin(), others.end(), [](const auto& one, const auto& other) {
        return one.first == other.first && is_same_value(one.second, other.second);
    });
}

at::Tensor place_for(const TensorForm& form, at::Device device) {
    if (form.is_on_host) throw NotRecordable{"a value is a tensor of the host"};
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

/// For so many microbatches of a form that are under way at once. Of recomputed ones nothing stays from one action to
/// the next, but from the first half of a backward to the second.
size_t num_recordings(const MicrobatchForm& form, int num_under_way) {
    if (!form.is_recomputed) return static_cast<size_t>(num_under_way);
    return form.is_split ? 0 : 1;
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

/// Without the autograd graph that made it.
at::Tensor plain_of(const at::Tensor& tensor) {
    return tensor.defined() ? tensor.detach().set_requires_grad(tensor.requires_grad()) : tensor;
}

}  // namespace

/// Random ops while they are recorded: each gets a place for its seed. What happens on the host happens once and never
/// again: nothing may be drawn from the CPU's generator, and nothing printed.
class Recordings::Randomness : public SeedListener {
  public:
    explicit Randomness(at::Device device) : seeds_(make_card_seeds(device)) {}

    void record(const std::function<void()>& ops) {
        const at::Generator& host = at::detail::getDefaultCPUGenerator();
        const at::Tensor before = host.get_state();
        const int64_t prints_before = num_prints();
        seeds_->begin_recording();
        {
            const ListeningToSeeds listening(*this);
            ops();
        }
        seeds_->end_recording();
        if (!at::equal(host.get_state(), before)) throw NotRecordable{"it draws random numbers on the CPU"};
        if (num_prints() != prints_before) throw NotRecordable{"it prints"};
    }

    void on_random_op(int64_t site, int64_t execution) override {
        sites_.emplace_back(site, execution);
        seeds_->next();
    }

    /// For the next replay.
    void set_key(uint64_t key) {
        std::vector<uint64_t> seeds;
        for (const auto& [site, execution] : sites_) seeds.push_back(site_seed(key, site, execution));
        seeds_->fill(seeds);
    }

  private:
    std::unique_ptr<CardSeeds> seeds_;
    std::vector<std::pair<int64_t, int64_t>> sites_;  ///< call site and execution
};

bool MicrobatchForm::has_inputs_of(const MicrobatchForm& other) const {
    return inputs == other.inputs && are_same(values, other.values) && without_gradient == other.without_gradient &&
           is_recomputed == other.is_recomputed;
}

bool MicrobatchForm::operator==(const MicrobatchForm& other) const {
    return has_inputs_of(other) && is_split == other.is_split && arrived == other.arrived &&
           tied_arrived == other.tied_arrived;
}

/// The graphs of one microbatch under way, or of all that are recomputed, with the places that they read and write.
class Recordings::Slot {
  public:
    /// Records; nothing is computed. Throws NotRecordable, and what the ops throw.
    Slot(MicrobatchForm form, at::Device device, SharedRecorder& shared, GradientSums& sums, const Ops& ops)
        : form_(std::move(form)),
          recorder_(form_.is_recomputed ? shared.get() : make_card_recorder(device)),
          sums_(sums),
          randomness_(device) {
        const MemoryMeter meter(device);
        const int64_t before = meter.now();
        meter.restart_peak();
        record(device, ops);
        if (form_.is_recomputed) lend_all();
        const int64_t work = meter.peak() - meter.now();
        if (form_.is_recomputed) shared.note_work(work);
        bytes_ = meter.now() - before + (form_.is_recomputed ? 0 : work);
    }

    const MicrobatchForm& form() const { return form_; }
    int64_t bytes() const { return bytes_; }
    const PassInputs& inputs() const { return inputs_; }
    const std::map<int, at::Tensor>& arrived() const { return arrived_; }

    bool is_free = true;  ///< it has nothing that a microbatch will need

    void forward(Microbatch& now) {
        take_inputs(now);
        if (!form_.is_recomputed) now.inputs = {};
        forward_->replay();
        now.tensors = copies_of(made_.tensors);
        for (const auto& [value, made] : made_.values) now.values[value] = map_tensors(made, plain_of);
        now.pending_tensors = made_.pending_tensors;
        now.pending_values = made_.pending_values;
        now.loss = copy_of(made_.loss);
    }

    void backward(Microbatch& now) {
        if (form_.is_recomputed) take_inputs(now);
        take_arrived(now);
        take_tied(now);
        sums_.add(given_, [&] { backward_->replay(); });
        now.input_gradients = copies_of(made_.input_gradients);
        now.tied_gradients = copies_of(made_.tied_gradients);
    }

    void input_gradients(Microbatch& now) {
        take_arrived(now);
        input_gradients_->replay();
        now.input_gradients = copies_of(made_.input_gradients);
    }

    void weight_gradients(Microbatch& now) {
        take_tied(now);
        sums_.add(given_, [&] { weight_gradients_->replay(); });
        now.tied_gradients = copies_of(made_.tied_gradients);
    }

  private:
    void record(at::Device device, const Ops& ops) {
        Microbatch now;
        record_forward(now, device, ops);
        const auto arrive = [&] { now.arrived = arrived_ = places_for(form_.arrived, device); };
        const auto arrive_tied = [&] { now.tied_arrived = tied_arrived_ = places_for(form_.tied_arrived, device); };
        const auto backward = [&] {
            arrive();
            arrive_tied();
            ops.backward(now);
        };
        if (form_.is_recomputed) {
            now.pass.reset();
            randomness_.record([&] {
                backward_ = record_sums([&] {
                    now.saved = ops.save(inputs_);
                    backward();
                });
            });
        } else if (form_.is_split) {
            input_gradients_ = recorder_->record([&] {
                arrive();
                ops.input_gradients(now);
            });
            weight_gradients_ = record_sums([&] {
                arrive_tied();
                ops.weight_gradients(now);
            });
        } else {
            backward_ = record_sums(backward);
        }
        made_.input_gradients = std::move(now.input_gradients);
        made_.tied_gradients = std::move(now.tied_gradients);
    }

    void record_forward(Microbatch& now, at::Device device, const Ops& ops) {
        const auto run = [&] {
            for (const auto& [id, input] : form_.inputs) inputs_.tensors[id] = place_for(input, device);
            inputs_.values = form_.values;
            inputs_.without_gradient = form_.without_gradient;
            now.inputs = inputs_;
            for (auto& [id, tensor] : now.inputs.tensors) {
                tensor = ops.writes(id) ? copy_beginning_alike(tensor) : tensor.detach();
            }
            ops.forward(now, /*is_recomputed=*/false);
        };
        randomness_.record([&] { forward_ = recorder_->record(run); });
        made_.tensors = std::move(now.tensors);
        for (const auto& [value, made] : now.values) made_.values[value] = map_tensors(made, plain_of);
        now.values.clear();
        made_.pending_tensors = std::move(now.pending_tensors);
        made_.pending_values = std::move(now.pending_values);
        made_.loss = std::move(now.loss);
        for (auto& [id, tensor] : made_.tensors) tensor = plain_of(tensor);
    }

    /// Ops that add into `.grad`.
    std::unique_ptr<CardGraph> record_sums(const std::function<void()>& ops) {
        std::unique_ptr<CardGraph> graph;
        given_ = sums_.record([&] { graph = recorder_->record(ops); });
        return graph;
    }

    /// The recorder's memory is for what others record too: what comes is copied there right before a replay, and what
    /// it leaves from there right behind it.
    void lend_all() {
        for (auto* tensors : {&inputs_.tensors, &arrived_, &tied_arrived_, &made_.tensors, &made_.input_gradients,
                              &made_.tied_gradients}) {
            lend(*tensors);
        }
        made_.loss = lent(made_.loss);
        for (auto& [value, made] : made_.values) made = map_tensors(made, lent);
    }

    /// What the ops that are recorded next read, and the seeds of the random ones.
    void take_inputs(const Microbatch& now) {
        fill(inputs_.tensors, now.inputs.tensors);
        inputs_.key = now.inputs.key;
        randomness_.set_key(inputs_.key);
    }

    void take_arrived(Microbatch& now) {
        fill(arrived_, now.arrived);
        now.arrived.clear();
    }

    void take_tied(Microbatch& now) {
        fill(tied_arrived_, now.tied_arrived);
        now.tied_arrived.clear();
    }

    MicrobatchForm form_;
    std::shared_ptr<CardRecorder> recorder_;
    PassInputs inputs_;
    std::map<int, at::Tensor> arrived_, tied_arrived_;
    Microbatch made_;  ///< what the graphs leave
    GradientSums& sums_;
    std::vector<size_t> given_;  ///< which parameters get a gradient
    Randomness randomness_;
    std::unique_ptr<CardGraph> forward_, backward_, input_gradients_, weight_gradients_;
    int64_t bytes_ = 0;
};

Recordings::Recordings(at::Device device, std::shared_ptr<SharedRecorder> shared, std::vector<at::Tensor> trained,
                       std::vector<at::Tensor> weights, Ops ops)
    : device_(device),
      shared_(std::move(shared)),
      trained_(std::move(trained)),
      weights_(std::move(weights)),
      ops_(std::move(ops)) {}

Recordings::~Recordings() = default;

at::Tensor Recordings::begin_step(const at::Tensor& loss_factor) {
    if (loss_factor.defined() && loss_factor_.defined()) loss_factor_.copy_(loss_factor);
    if (loss_factor.defined() && !loss_factor_.defined()) loss_factor_ = loss_factor.clone();
    if (are_made() && addresses() != addresses_) forget();
    if (!are_made() && reason_.empty() && num_steps_++ == kStepsByOp) record();
    if (sums_) sums_->begin_step();
    for (const std::unique_ptr<Slot>& slot : slots_) slot->is_free = true;
    noted_.clear();
    turns_.clear();
    return loss_factor.defined() ? loss_factor_ : at::Tensor();
}

void Recordings::forget() {
    slots_.clear();
    sums_.reset();
    num_steps_ = 0;
}

std::vector<const void*> Recordings::addresses() const {
    std::vector<const void*> all;
    for (const at::Tensor& weight : weights_) all.push_back(weight.const_data_ptr());
    return all;
}

/// What fails here has run op by op before, so it fails because it is recorded.
void Recordings::record() {
    give_back_memory(device_);
    expected_.clear();
    for (const auto& [microbatch, noted] : noted_) expected_[microbatch] = noted.form;
    addresses_ = addresses();
    try {
        check_nothing_is_under_way();
        sums_ = std::make_unique<GradientSums>(trained_);
        for (MicrobatchForm& form : forms_under_way()) {
            check_room();
            slots_.push_back(std::make_unique<Slot>(std::move(form), device_, *shared_, *sums_, ops_));
        }
        if (slots_.empty()) throw NotRecordable{"its microbatches are recomputed for a backward in two halves"};
    } catch (const NotRecordable& found) {
        reason_ = found.reason;
    } catch (const std::exception& error) {
        reason_ = core_of(error.what());
    }
    if (reason_.empty()) return;
    forget();
    give_back_memory(device_);
}

/// Autograd adds into `.grad` in the stream of whoever asked for a parameter's gradient first: not in that which
/// records while a graph from before is there.
void Recordings::check_nothing_is_under_way() const {
    for (const at::Tensor& parameter : trained_) {
        if (torch::autograd::impl::try_get_grad_accumulator(parameter)) {
            throw NotRecordable{"the backward pass of an earlier microbatch has not come"};
        }
    }
}

/// For one more like the last: the allocator cannot tell that it has none while it serves a recording.
void Recordings::check_room() const {
    constexpr int64_t kSpareBytes = int64_t{64} << 20;  // it asks for more than it gives
    const int64_t needed = slots_.empty() ? 0 : slots_.back()->bytes() + kSpareBytes;
    if (MemoryMeter(device_).free_bytes() < needed) throw NotRecordable{"the card has no room for it"};
}

/// Each form of the last step as often as a recording of it is needed.
std::vector<MicrobatchForm> Recordings::forms_under_way() const {
    constexpr size_t kMostForms = 4;
    struct Count {
        const MicrobatchForm* form;
        int now = 0, most = 0;
    };
    std::vector<Count> counts;
    for (const auto& [microbatch, begins] : turns_) {
        const MicrobatchForm& form = noted_.at(microbatch).form;
        auto count = std::find_if(counts.begin(), counts.end(), [&](const Count& one) { return *one.form == form; });
        if (count == counts.end()) count = counts.insert(counts.end(), {&form});
        count->now += begins ? 1 : -1;
        count->most = std::max(count->most, count->now);
    }
    if (counts.size() > kMostForms) throw NotRecordable{"its microbatches have more than four forms"};
    std::vector<MicrobatchForm> forms;
    for (const Count& count : counts) forms.insert(forms.end(), num_recordings(*count.form, count.most), *count.form);
    return forms;
}

/// One that does what the microbatch did when forms were noted.
Recordings::Slot* Recordings::free_slot(int microbatch, const MicrobatchForm& inputs) const {
    const auto expected = expected_.find(microbatch);
    if (expected == expected_.end() || !expected->second.has_inputs_of(inputs)) return nullptr;
    for (const std::unique_ptr<Slot>& slot : slots_) {
        if (slot->is_free && slot->form() == expected->second) return slot.get();
    }
    return nullptr;
}

void Recordings::forward(int microbatch, Microbatch& now, bool is_recomputed) {
    Noted& noted = noted_[microbatch];
    noted.form.inputs = forms_of(now.inputs.tensors);
    noted.form.values = without_tensors(now.inputs.values);
    noted.form.without_gradient = now.inputs.without_gradient;
    noted.form.is_recomputed = is_recomputed;
    turns_.emplace_back(microbatch, true);
    noted.slot = free_slot(microbatch, noted.form);
    if (noted.slot == nullptr) return ops_.forward(now, is_recomputed);
    noted.slot->is_free = is_recomputed;
    now.is_replayed = true;
    noted.slot->forward(now);
}

void Recordings::backward(int microbatch, Microbatch& now) {
    Noted& noted = note_arrived(microbatch, now);
    noted.form.tied_arrived = gradient_forms_of(now.tied_arrived);
    if (noted.slot != nullptr && noted.slot->form() == noted.form) {
        noted.slot->backward(now);
    } else {
        make_pass_again(noted, now);
        ops_.backward(now);
    }
    end(microbatch, now);
}

void Recordings::input_gradients(int microbatch, Microbatch& now) {
    Noted& noted = note_arrived(microbatch, now);
    noted.form.is_split = true;
    if (noted.slot != nullptr && noted.slot->form().is_split && noted.slot->form().arrived == noted.form.arrived) {
        return noted.slot->input_gradients(now);
    }
    make_pass_again(noted, now);
    ops_.input_gradients(now);
}

void Recordings::weight_gradients(int microbatch, Microbatch& now) {
    Noted& noted = noted_.at(microbatch);
    noted.form.tied_arrived = gradient_forms_of(now.tied_arrived);
    const bool has_replayed_inputs = noted.slot != nullptr && !noted.is_made_again;
    if (has_replayed_inputs && noted.slot->form() == noted.form) {
        noted.slot->weight_gradients(now);
        return end(microbatch, now);
    }
    if (has_replayed_inputs) {
        make_pass_again(noted, now);
        now.arrived = noted.slot->arrived();
        ops_.input_gradients(now);  // once more
        now.input_gradients.clear();
    }
    ops_.weight_gradients(now);
    end(microbatch, now);
}

Recordings::Noted& Recordings::note_arrived(int microbatch, const Microbatch& now) {
    Noted& noted = noted_.at(microbatch);
    noted.form.arrived = gradient_forms_of(now.arrived);
    return noted;
}

/// What arrived is other than expected: the ops run one by one after all, from what forward was given.
void Recordings::make_pass_again(Noted& noted, Microbatch& now) const {
    if (noted.slot == nullptr) return;
    now.saved = ops_.save(noted.form.is_recomputed ? now.inputs : noted.slot->inputs());
    noted.is_made_again = true;
}

void Recordings::end(int microbatch, Microbatch& now) {
    now.is_replayed = false;
    now.inputs = {};
    turns_.emplace_back(microbatch, false);
    if (Slot* slot = noted_.at(microbatch).slot) slot->is_free = true;
}

int64_t Recordings::bytes() const {
    int64_t sum = 0;
    for (const std::unique_ptr<Slot>& slot : slots_) sum += slot->bytes();
    return sum;
}

}  // namespace vpp
