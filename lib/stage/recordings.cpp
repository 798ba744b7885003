#include "stage/recordings.hpp"

#include <torch/csrc/autograd/variable.h>

#include <algorithm>

#include "base/error.hpp"
#include "device/memory_begin.hpp"
#include "device/memory_meter.hpp"
#include "graph/torch_errors.hpp"
#include "stage/not_recordable.hpp"

namespace vpp {

namespace {

constexpr size_t kMostForms = 4;

}  // namespace

Recordings::Recordings(at::Device device, std::shared_ptr<SharedRecorder> shared, std::vector<at::Tensor> trained,
                       std::vector<at::Tensor> weights, SegmentOps ops)
    : device_(device),
      shared_(std::move(shared)),
      trained_(std::move(trained)),
      weights_(std::move(weights)),
      ops_(std::move(ops)) {}

at::Tensor Recordings::begin_step(const at::Tensor& loss_factor, bool may_record, OpByOpBytes by_op) {
    if (loss_factor.defined() && loss_factor_.defined()) loss_factor_.copy_(loss_factor);
    if (loss_factor.defined() && !loss_factor_.defined()) loss_factor_ = loss_factor.clone();
    if (are_made() && addresses() != addresses_) forget();
    if (will_record() && may_record) record(by_op);
    ++num_steps_;
    if (sums_) sums_->begin_step();
    for (const std::unique_ptr<Recording>& recording : recordings_) recording->is_free = true;
    noted_.clear();
    turns_.clear();
    return loss_factor.defined() ? loss_factor_ : at::Tensor();
}

void Recordings::forget() {
    recordings_.clear();
    sums_.reset();
    evaluated_.clear();
    num_steps_ = 0;
}

std::vector<const void*> Recordings::addresses() const {
    std::vector<const void*> all;
    for (const at::Tensor& weight : weights_) all.push_back(weight.const_data_ptr());
    return all;
}

/// What fails here has run op by op before, so it fails because it is recorded.
void Recordings::record(OpByOpBytes by_op) {
    expected_.clear();
    for (const auto& [microbatch, noted] : noted_) expected_[microbatch] = noted.form;
    addresses_ = addresses();
    const MemoryMeter meter(device_);
    int64_t known_failures = meter.failed_requests();
    try {
        record_all(by_op);
    } catch (const NotRecordable& found) {
        reason_ = found.reason;
    } catch (const std::exception& error) {
        known_failures += tells_of_full_device(error) ? 1 : 0;
        reason_ = core_of(error.what());
    }
    if (meter.failed_requests() > known_failures) {
        throw Error(ErrorKind::OutOfMemory,
                    "the card had no room for recordings of ops, and a library did without memory, by an algorithm "
                    "that may have other bits and that it may keep to; set pipeline.cuda_graphs = false");
    }
    if (reason_.empty()) return;
    forget();
    give_back_memory(device_);
}

/// Room is looked at before each, as libraries go on without: for one more like the last, or as it was op by op. And
/// behind the last, for what runs op by op beside recordings; those of evaluation come in addition to what steps take.
void Recordings::record_all(OpByOpBytes by_op) {
    const int64_t given_back_bytes = shared_->give_back_memory();
    check_nothing_is_under_way();
    sums_ = std::make_unique<GradientSums>(trained_);
    int64_t needed_bytes = evaluated_.empty() ? by_op.microbatch : std::max(by_op.microbatch, given_back_bytes);
    for (MicrobatchForm& form : forms_to_record()) {
        check_room(needed_bytes);
        recordings_.push_back(std::make_unique<Recording>(std::move(form), device_, *shared_, *sums_, ops_));
        needed_bytes = std::max(needed_bytes, recordings_.back()->bytes() + shared_->work_bytes());
    }
    check_room(std::max(needed_bytes, by_op.beside));
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

/// The allocator cannot tell that it has none while it serves a recording.
void Recordings::check_room(int64_t needed_bytes) const {
    constexpr int64_t kSpareBytes = int64_t{64} << 20;  // it asks for more than it gives
    if (MemoryMeter(device_).free_bytes() < needed_bytes + kSpareBytes) {
        throw NotRecordable{"the card has no room for it"};
    }
}

/// Each form of the last step as often as recordings held microbatches of it at once; those of evaluations once.
std::vector<MicrobatchForm> Recordings::forms_to_record() const {
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
    if (std::max(counts.size(), evaluated_.size()) > kMostForms) {
        throw NotRecordable{"its microbatches have more than four forms"};
    }
    std::vector<MicrobatchForm> forms = evaluated_;
    for (const Count& count : counts) forms.insert(forms.end(), static_cast<size_t>(count.most), *count.form);
    return forms;
}

/// One that does what the microbatch did when forms were noted. Forward of recomputed ones leaves it as it is.
Recording* Recordings::find(int microbatch, const MicrobatchForm& inputs, bool must_be_free) const {
    const auto expected = expected_.find(microbatch);
    if (expected == expected_.end() || !expected->second.has_inputs_of(inputs)) return nullptr;
    for (const std::unique_ptr<Recording>& recording : recordings_) {
        const bool may_be = recording->is_free || !must_be_free;
        if (may_be && recording->form() == expected->second) return recording.get();
    }
    return nullptr;
}

void Recordings::forward(int microbatch, Microbatch& now, bool is_recomputed) {
    Noted& noted = noted_[microbatch];
    noted.form.note_inputs(now.inputs);
    noted.form.is_recomputed = is_recomputed;
    noted.recording = find(microbatch, noted.form, !is_recomputed);
    if (!is_recomputed) hold(microbatch, noted);
    if (noted.recording == nullptr) return ops_.forward(now, is_recomputed);
    now.is_replayed = true;
    noted.recording->forward(now);
    if (is_recomputed) keep_from_writers(now.inputs);
}

/// Whoever shares the memory of an input may write it before its ops run once more, as PassRunner::save has it.
void Recordings::keep_from_writers(PassInputs& inputs) const {
    for (auto& [id, tensor] : inputs.tensors) {
        if (ops_.writes(id)) tensor = copy_beginning_alike(tensor);
    }
}

void Recordings::backward(int microbatch, Microbatch& now) {
    Noted& noted = note_arrived(microbatch, now);
    noted.form.tied_arrived = gradient_forms_of(now.tied_arrived);
    if (noted.recording != nullptr && noted.recording->form() == noted.form) {
        noted.recording->backward(now);
    } else {
        make_pass_again(noted, now);
        ops_.backward(now);
    }
    end(microbatch, now);
}

void Recordings::input_gradients(int microbatch, Microbatch& now) {
    Noted& noted = note_arrived(microbatch, now);
    noted.form.is_split = true;
    if (noted.recording != nullptr && noted.recording->form().is_split &&
        noted.recording->form().arrived == noted.form.arrived) {
        return noted.recording->input_gradients(now);
    }
    make_pass_again(noted, now);
    ops_.input_gradients(now);
}

void Recordings::weight_gradients(int microbatch, Microbatch& now) {
    Noted& noted = noted_.at(microbatch);
    noted.form.tied_arrived = gradient_forms_of(now.tied_arrived);
    const bool has_replayed_inputs = noted.recording != nullptr && !noted.is_made_again;
    if (has_replayed_inputs && noted.recording->form() == noted.form) {
        noted.recording->weight_gradients(now);
        return end(microbatch, now);
    }
    if (has_replayed_inputs) {
        make_pass_again(noted, now);
        now.arrived = noted.recording->arrived();
        ops_.input_gradients(now);  // once more
        now.input_gradients.clear();
    }
    ops_.weight_gradients(now);
    end(microbatch, now);
}

void Recordings::evaluate(Microbatch& now) {
    MicrobatchForm form;
    form.note_inputs(now.inputs);
    form.is_evaluated = true;
    const auto made = std::find_if(recordings_.begin(), recordings_.end(),
                                   [&](const auto& recording) { return recording->form() == form; });
    if (made != recordings_.end()) return (*made)->forward(now);
    const bool is_new = std::find(evaluated_.begin(), evaluated_.end(), form) == evaluated_.end();
    if (!are_made() && is_new && evaluated_.size() <= kMostForms) evaluated_.push_back(std::move(form));
    ops_.forward(now, /*is_recomputed=*/false);
}

Recordings::Noted& Recordings::note_arrived(int microbatch, const Microbatch& now) {
    Noted& noted = noted_.at(microbatch);
    noted.form.arrived = gradient_forms_of(now.arrived);
    if (!noted.form.is_recomputed) return noted;
    if (noted.recording != nullptr) noted.recording = find(microbatch, noted.form, /*must_be_free=*/true);
    hold(microbatch, noted);
    return noted;
}

/// From now on its recording, if it has one, holds what the microbatch will need.
void Recordings::hold(int microbatch, const Noted& noted) {
    turns_.emplace_back(microbatch, true);
    if (noted.recording != nullptr) noted.recording->is_free = false;
}

/// What arrived is other than expected: the ops run one by one after all, from what forward was given.
void Recordings::make_pass_again(Noted& noted, Microbatch& now) const {
    if (!now.is_replayed) return;
    now.saved = ops_.save(noted.form.is_recomputed ? now.inputs : noted.recording->inputs());
    noted.is_made_again = true;
}

void Recordings::end(int microbatch, Microbatch& now) {
    now.is_replayed = false;
    now.inputs = {};
    turns_.emplace_back(microbatch, false);
    if (Recording* recording = noted_.at(microbatch).recording) recording->is_free = true;
}

int64_t Recordings::bytes() const {
    int64_t sum = 0;
    for (const std::unique_ptr<Recording>& recording : recordings_) sum += recording->bytes();
    return sum;
}

}  // namespace vpp
