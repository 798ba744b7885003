#include "engine/executor.hpp"

#include <algorithm>
#include <map>
#include <new>
#include <set>

#include "base/clock_alignment.hpp"
#include "base/error.hpp"
#include "base/units.hpp"
#include "device/upload.hpp"
#include "graph/torch_errors.hpp"

namespace vpp {

namespace {

const char* const kTakesLess =
    "use more stages, smaller microbatches (a larger pipeline.num_microbatches), pipeline.recompute, or fewer ranks "
    "here";

Channel channel_of(const Action& action) {
    const bool backward = action.kind == ActionKind::SendB || action.kind == ActionKind::RecvB;
    return {action.edge, action.microbatch, backward ? Direction::Backward : Direction::Forward};
}

/// Ops on received memory keep their autograd identity apart from the sender's.
at::Tensor as_input(const at::Tensor& tensor) {
    return tensor.detach();
}

/// An error of the data says which these are.
template <typename Run>
void naming_data(const MicrobatchEnds& ends, int microbatch, const Run& run) {
    try {
        run();
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::BadData || !ends.place) throw;
        throw Error(error.kind(), std::string(error.what()) + " (" + ends.place(microbatch) + ")");
    }
}

}  // namespace

std::string describe(const Action& action) {
    const std::string text = "stage " + std::to_string(action.stage) + ", " + word_of(action.kind);
    if (action.kind == ActionKind::ReduceGrad) return text;
    return text + " of microbatch " + std::to_string(action.microbatch);
}

Executor::Executor(const Phase& phase, Source& source, const Weights& weights, const SegmentOptions& options,
                   Transport& transport, std::vector<int> pipeline, int pp_rank, bool overlap)
    : phase_(phase),
      transport_(transport),
      pipeline_(std::move(pipeline)),
      pp_rank_(pp_rank),
      overlap_(overlap),
      recorder_(options.recorder),
      segments_(phase.split.segments.size()),
      device_(source.device()),
      meter_(device_) {
    spans_.reserve(phase.schedule.actions[static_cast<size_t>(pp_rank)].size());
    for (int index : phase.schedule.stages_of(pp_rank)) {
        const auto [begin, end] = phase.split.segments_of(index);
        for (int i = begin; i < end; ++i) {
            segments_[static_cast<size_t>(i)] =
                std::make_unique<Segment>(phase.graph, phase.split, i, source, weights, options);
        }
    }
}

void Executor::run(const MicrobatchEnds& ends, const at::Tensor& loss_factor) {
    posted_ = 0;
    outstanding_ = 0;
    losses_.clear();
    spans_.clear();
    if (marks_) mark_device();                              // none of a run that has failed
    if (are_messages_timed_) transport_.take_part_spans();  // none of an evaluation before it
    wait_seconds_ += transport_.take_wait_seconds();
    peak_parked_bytes_ = 0;
    const int64_t recorded_before = recorded_segments();
    begin_segments(loss_factor);
    memory_.clear();
    const bool runs_new_ops = !std::exchange(has_run_, true) || recorded_segments() != recorded_before;
    const ThroughHost through_host(transport_, runs_new_ops || phase_.graph.shapes_follow_data);
    // Recordings that found no room, and what is in those that did, are no action's.
    bytes_before_ = meter_.now();
    failed_before_ = meter_.failed_requests();
    const std::vector<Action>& actions = phase_.schedule.actions[static_cast<size_t>(pp_rank_)];
    for (size_t i = 0; i < actions.size(); ++i) {
        if (overlap_) post_receives(i);
        run_measured(actions[i], ends);
    }
    if (reduction_ != nullptr) run_known([&] { reduction_->finish(); });
    note_memory_by_op();
    transport_.finish_sends();
    uploaded_.clear();
    read_losses();
    if (marks_) transport_.take_wait_seconds();  // for what the card still computes
    if (are_messages_timed_) note_message_times();
}

void Executor::begin_segments(const at::Tensor& loss_factor) {
    made_losses_.clear();
    std::map<int, int64_t> microbatch_bytes;  // for recordings that are not made yet
    if (by_op_segments() > 0) microbatch_bytes = bytes_by_stage();
    for (const auto& segment : segments_) {
        if (!segment) continue;
        const int stage = phase_.split.segments[static_cast<size_t>(segment->index())].stage;
        const OpByOpBytes by_op{microbatch_bytes[stage], bytes_beside(stage)};
        run_known([&] { segment->begin_step(loss_factor, may_record_, by_op); },
                  "stage " + std::to_string(stage) + ", before its first action: ");
        if (segment->io().makes_loss) made_losses_.resize(static_cast<size_t>(phase_.schedule.num_microbatches));
    }
}

/// Notes what the action takes, and says where an error comes from.
void Executor::run_measured(const Action& action, const MicrobatchEnds& ends) {
    const std::string position = describe(action);
    transport_.set_position(position);
    meter_.restart_peak();
    const int64_t before = meter_.now();
    const int64_t begin = steady_nanoseconds();
    const bool is_marked = marks_ && is_computing(action.kind);
    try {
        if (is_marked) marks_->mark();
        run_known([&] { run_action(action, ends); });
        if (is_marked) marks_->mark();
        refuse_other_algorithms();
        note_time(begin);
        if (reduction_ != nullptr) run_known([&] { reduction_->advance(); });
    } catch (const Error& error) {
        // Libraries that find no memory often say something else.
        const bool is_behind_failed_requests = error.kind() == ErrorKind::BadData && num_failed_requests() > 0;
        if (is_behind_failed_requests) {
            throw Error(ErrorKind::OutOfMemory,
                        position + ": " + error.what() + "; before that the device had no memory for " +
                            counted_text(num_failed_requests(), "request") + " (" + memory_text() + "); " + kTakesLess);
        }
        const bool has_no_memory = error.kind() == ErrorKind::OutOfMemory;
        throw Error(error.kind(),
                    position + ": " + error.what() + (has_no_memory ? " (" + memory_text() + ")" : std::string()));
    } catch (const std::bad_alloc&) {
        throw Error(ErrorKind::OutOfMemory, position + ": out of memory; " + memory_text() + "; " + kTakesLess);
    }
    memory_.push_back({before, meter_.peak(), meter_.now()});
    if (watch_.action) watch_.action(action);
}

void Executor::note_memory_by_op() {
    const std::vector<Action>& actions = phase_.schedule.actions[static_cast<size_t>(pp_rank_)];
    const std::set<int> replayed = recorded_stages();
    memory_by_op_.resize(actions.size());
    for (size_t i = 0; i < actions.size(); ++i) {
        if (!replayed.contains(actions[i].stage)) memory_by_op_[i] = memory_[i];
    }
}

/// What a microbatch took at most in the last run: each of its actions at its peak.
std::map<int, int64_t> Executor::bytes_by_stage() const {
    const std::vector<Action>& actions = phase_.schedule.actions[static_cast<size_t>(pp_rank_)];
    std::map<std::pair<int, ActionKind>, int64_t> most;
    for (size_t i = 0; i < memory_.size(); ++i) {
        if (!is_computing(actions[i].kind)) continue;
        int64_t& bytes = most[{actions[i].stage, actions[i].kind}];
        bytes = std::max(bytes, memory_[i].peak - memory_[i].before);
    }
    std::map<int, int64_t> sums;
    for (const auto& [action, bytes] : most) sums[action.first] += bytes;
    return sums;
}

/// What the rank took at most in the last run, without what the stage and those that are recorded by now held then.
int64_t Executor::bytes_beside(int stage) const {
    if (by_op_segments() == 0) return 0;
    std::set<int> left_out = recorded_stages();
    left_out.insert(stage);
    const std::vector<Action>& actions = phase_.schedule.actions[static_cast<size_t>(pp_rank_)];
    int64_t held = 0, most = 0;
    for (size_t i = 0; i < memory_.size(); ++i) {
        const bool is_left_out = is_computing(actions[i].kind) && left_out.contains(actions[i].stage);
        most = std::max(most, (is_left_out ? memory_[i].before : memory_[i].peak) - bytes_before_ - held);
        if (is_left_out) held += memory_[i].after - memory_[i].before;
    }
    return most;
}

std::set<int> Executor::recorded_stages() const {
    std::set<int> stages;
    for (const auto& segment : segments_) {
        if (!segment || !segment->recordings() || !segment->recordings()->are_made()) continue;
        stages.insert(phase_.split.segments[static_cast<size_t>(segment->index())].stage);
    }
    return stages;
}

void Executor::mark_device() {
    if (!device_.is_cpu()) marks_.emplace(device_);
}

void Executor::note_device_times() {
    if (!marks_) return;
    const std::vector<int64_t> moments = marks_->take();
    auto moment = moments.begin();
    const std::vector<Action>& actions = phase_.schedule.actions[static_cast<size_t>(pp_rank_)];
    for (size_t i = 0; i < actions.size(); ++i) {
        if (!is_computing(actions[i].kind)) continue;
        spans_[i].device_begin = *moment++;
        spans_[i].device_end = *moment++;
    }
    for (const ActionSpan& span : work_spans(actions, spans_)) wait_seconds_ += 1e-9 * static_cast<double>(span.wait);
}

void Executor::time_messages(bool is_timed) {
    are_messages_timed_ = is_timed;
    transport_.time_parts(is_timed);
}

void Executor::note_message_times() {
    const std::vector<Action>& actions = phase_.schedule.actions[static_cast<size_t>(pp_rank_)];
    const std::vector<PartSpan> parts = transport_.take_part_spans();
    for (size_t i = 0; i < actions.size(); ++i) {
        ActionSpan& span = spans_[i];
        if (!is_transfer(actions[i].kind)) continue;
        const int peer = pipeline_[static_cast<size_t>(actions[i].peer)];
        const auto part = std::find_if(parts.begin(), parts.end(), [&](const PartSpan& other) {
            return other.peer == peer && other.sends == is_send(actions[i].kind) &&
                   other.channel == channel_of(actions[i]);
        });
        if (part == parts.end()) continue;  // it had none, or MPI moved it by itself
        span.device_begin = part->begin;
        span.device_end = part->end;
    }
}

/// Once a run: each value that is read waits for the device.
void Executor::read_losses() {
    for (size_t i = 0; i < made_losses_.size(); ++i) losses_.push_back(loss_of(static_cast<int>(i)));
}

double Executor::loss_of(int microbatch) const {
    const at::Tensor& loss = made_losses_.at(static_cast<size_t>(microbatch));
    return loss.defined() ? loss.item<double>() : 0;
}

/// For memory of the device, in this step.
int64_t Executor::num_failed_requests() const {
    return meter_.failed_requests() - failed_before_;
}

/// On a full card libraries go on by other means, and say nothing.
void Executor::refuse_other_algorithms() const {
    const int64_t failed = num_failed_requests();
    if (failed == 0) return;
    throw Error(ErrorKind::OutOfMemory, "the device had no memory for " + counted_text(failed, "request") +
                                            ", and a library did without, by an algorithm that may have other bits; " +
                                            kTakesLess);
}

/// Where the memory is.
std::string Executor::memory_text() const {
    const int64_t now = meter_.now(), recorded = recorded_bytes();
    return "this rank's tensors take " + bytes_text(now) + ", " + bytes_text(now - bytes_before_) +
           " of them since the step began" +
           (recorded > 0
                ? ", and recordings of ops " + bytes_text(recorded) + ": pipeline.cuda_graphs = false saves that"
                : "");
}

/// Of the action that has just ended.
void Executor::note_time(int64_t begin) {
    const int64_t end = steady_nanoseconds();
    const double waited = transport_.take_wait_seconds();
    if (!marks_) wait_seconds_ += waited;
    spans_.push_back(
        {begin, end, std::min(end - begin, static_cast<int64_t>(waited * 1e9)), std::exchange(load_nanoseconds_, 0)});
}

double Executor::actions_seconds() const {
    if (spans_.empty()) return 0;
    int64_t end = spans_.back().end;
    for (const ActionSpan& span : spans_) end = std::max(end, span.device_end);
    return 1e-9 * static_cast<double>(end - spans_.front().begin);
}

int64_t Executor::activation_bytes() const {
    int64_t most = bytes_before_;
    for (const ActionMemory& action : memory_) most = std::max(most, action.peak);
    return most - bytes_before_ + recorded_bytes();
}

int64_t Executor::recorded_bytes() const {
    int64_t bytes = recorder_ ? recorder_->work_bytes() : 0;
    for (const auto& segment : segments_) {
        if (segment && segment->recordings()) bytes += segment->recordings()->bytes();
    }
    return bytes;
}

int64_t Executor::recorded_segments() const {
    return std::count_if(segments_.begin(), segments_.end(), [](const auto& segment) {
        return segment && segment->recordings() && segment->recordings()->are_made();
    });
}

bool Executor::will_record() const {
    return std::any_of(segments_.begin(), segments_.end(), [](const auto& segment) {
        return segment && segment->recordings() && segment->recordings()->will_record();
    });
}

int64_t Executor::by_op_segments() const {
    if (!recorder_) return 0;
    const auto own = std::count_if(segments_.begin(), segments_.end(), [](const auto& one) { return one != nullptr; });
    return own - recorded_segments();
}

std::string Executor::recording_problems() const {
    std::set<std::pair<int, std::string>> problems;  // by stage
    for (const auto& segment : segments_) {
        if (!segment || !segment->recordings() || segment->recordings()->reason().empty()) continue;
        const int stage = phase_.split.segments[static_cast<size_t>(segment->index())].stage;
        problems.emplace(stage, segment->recordings()->reason());
    }
    std::string text;
    for (const auto& [stage, reason] : problems) {
        text += (text.empty() ? "stage " : "; stage ") + std::to_string(stage) + ": " + reason;
    }
    return text;
}

void Executor::run_action(const Action& action, const MicrobatchEnds& ends) {
    switch (action.kind) {
        case ActionKind::F:
            return run_forward(action, ends);
        case ActionKind::B:
        case ActionKind::I:
        case ActionKind::W:
            return naming_data(ends, action.microbatch, [&] { run_backward(action); });
        case ActionKind::SendF:
        case ActionKind::SendB:
            return send(action);
        case ActionKind::RecvF:
        case ActionKind::RecvB:
            return receive(action);
        case ActionKind::ReduceGrad:
            check(reduction_ != nullptr, "gradients of one replica are not reduced");
            return reduction_->start(action.stage);
    }
}

void Executor::run_forward(const Action& action, const MicrobatchEnds& ends) {
    const auto [begin, end] = phase_.split.segments_of(action.stage);
    for (int i = begin; i < end; ++i) forward(segment(i), action.microbatch, ends);
}

void Executor::run_backward(const Action& action) {
    const auto [begin, end] = phase_.split.segments_of(action.stage);
    for (int i = end - 1; i >= begin; --i) backward(segment(i), action.kind, action.microbatch);
}

void Executor::forward(Segment& now, int microbatch, const MicrobatchEnds& ends) {
    for (int input : phase_.split.segments[static_cast<size_t>(now.index())].inputs) {
        const int64_t begin = steady_nanoseconds();
        std::vector<at::Tensor>* kept = transport_.goes_through_host() ? &uploaded_ : nullptr;
        at::Tensor loaded = upload(ends.input(microbatch, input), device_, kept);
        load_nanoseconds_ += steady_nanoseconds() - begin;
        now.set_input(microbatch, input, std::move(loaded));
    }
    naming_data(ends, microbatch, [&] { now.forward(microbatch, ends.key(microbatch)); });
    if (now.io().makes_loss) made_losses_[static_cast<size_t>(microbatch)] = now.take_loss(microbatch);
    if (now.io().gathered >= 0) ends.take_outputs(microbatch, now.take_outputs(microbatch));
    for (int edge_id : now.io().exports) {
        const Edge& edge = phase_.split.edges[static_cast<size_t>(edge_id)];
        if (is_here(edge.segments.consumer)) hand_over(edge, microbatch);
    }
}

void Executor::backward(Segment& now, ActionKind kind, int microbatch) {
    if (kind == ActionKind::B) now.backward(microbatch);
    if (kind == ActionKind::I) now.input_gradients(microbatch);
    if (kind == ActionKind::W) now.weight_gradients(microbatch);
    peak_parked_bytes_ = std::max(peak_parked_bytes_, now.parked_bytes());
    for (const Edge& edge : phase_.split.edges) {
        const bool made = edge.is_tied() ? gives_weight_gradient(kind) : gives_input_gradient(kind);
        const bool gives = made && edge.segments.consumer == now.index() && edge.has_gradient;
        if (gives && is_here(edge.segments.gradient_to)) hand_back(edge, microbatch);
    }
}

at::Tensor Executor::take_tensor(const Edge& edge, int microbatch) {
    const at::Tensor tensor = segment(edge.segments.producer).take_tensor(microbatch, edge);
    if (watch_.tensor) watch_.tensor(edge, microbatch, Direction::Forward, tensor);
    return tensor;
}

at::Tensor Executor::take_gradient(const Edge& edge, int microbatch) {
    at::Tensor gradient = segment(edge.segments.consumer).take_gradient(microbatch, edge);
    if (watch_.tensor) watch_.tensor(edge, microbatch, Direction::Backward, gradient);
    return gradient;
}

void Executor::hand_over(const Edge& edge, int microbatch) {
    Segment& to = segment(edge.segments.consumer);
    if (edge.is_bundle()) {
        return to.receive_values(microbatch, edge, segment(edge.segments.producer).take_values(microbatch, edge));
    }
    const at::Tensor tensor = take_tensor(edge, microbatch);
    to.receive_tensor(microbatch, edge, as_input(tensor), tensor.requires_grad());
}

void Executor::hand_back(const Edge& edge, int microbatch) {
    segment(edge.segments.gradient_to).add_gradient(microbatch, edge, take_gradient(edge, microbatch));
}

/// Tensors are sent from where they lie. What F made is kept for B too, so others have its memory; who could write into
/// it is an op behind the segment that runs on this rank, before the message has gone.
Contents Executor::contents_of(const Action& action, const at::Tensor& tensor) const {
    const bool is_of_host = tensor.defined() && tensor.is_cpu() && !device_.is_cpu();
    if (is_of_host) return Contents::InBytes;
    if (!device_.is_cpu() && !transport_.carries_device_memory()) return Contents::HostPart;
    const Edge& edge = edge_of(action);
    if (action.kind == ActionKind::SendB) return Contents::Part;
    const int end = phase_.split.segments[static_cast<size_t>(edge.segments.producer)].ops.end;
    const std::vector<int>& writers = phase_.graph.tensors[static_cast<size_t>(edge.tensor)].writers;
    const bool is_written_later = !writers.empty() && writers.back() >= end;
    return is_written_later ? Contents::Part : Contents::SharedPart;
}

void Executor::send(const Action& action) {
    const Edge& edge = edge_of(action);
    const size_t limit = most_bytes(edge);
    Buffer message;
    if (action.kind == ActionKind::SendF && edge.is_bundle()) {
        Segment& from = segment(edge.segments.producer);
        message = encode_values(from.take_values(action.microbatch, edge), limit, edge.name);
    } else {
        const bool is_gradient = action.kind == ActionKind::SendB;
        const at::Tensor tensor =
            is_gradient ? take_gradient(edge, action.microbatch) : take_tensor(edge, action.microbatch);
        const Contents contents = contents_of(action, tensor);
        message = encode_tensor(tensor, limit, edge.name, contents);
    }
    transport_.send(pipeline_[static_cast<size_t>(action.peer)], channel_of(action), std::move(message));
    if (!overlap_) transport_.finish_sends();
}

void Executor::receive(const Action& action) {
    if (!overlap_) post(action);
    const Edge& edge = edge_of(action);
    const Buffer message = transport_.receive(pipeline_[static_cast<size_t>(action.peer)], channel_of(action));
    --outstanding_;
    if (action.kind == ActionKind::RecvB) {
        ReceivedTensor gradient = decode_tensor(message, edge.name, device_);
        segment(edge.segments.gradient_to).add_gradient(action.microbatch, edge, std::move(gradient.tensor));
        return;
    }
    Segment& to = segment(edge.segments.consumer);
    if (edge.is_bundle()) return to.receive_values(action.microbatch, edge, decode_values(message, device_));
    ReceivedTensor received = decode_tensor(message, edge.name, device_);
    to.receive_tensor(action.microbatch, edge, std::move(received.tensor), received.requires_grad);
}

void Executor::post_receives(size_t position) {
    const std::vector<Action>& actions = phase_.schedule.actions[static_cast<size_t>(pp_rank_)];
    posted_ = std::max(posted_, position);
    for (; posted_ < actions.size() && outstanding_ < kReceivesAhead; ++posted_) {
        if (is_receive(actions[posted_].kind)) post(actions[posted_]);
    }
}

void Executor::post(const Action& action) {
    transport_.post_receive(pipeline_[static_cast<size_t>(action.peer)], channel_of(action),
                            most_bytes(edge_of(action)));
    ++outstanding_;
}

/// Tied gradients are as large as their weights.
size_t Executor::most_bytes(const Edge& edge) const {
    const bool has_bound = edge.is_tied() || !phase_.graph.shapes_follow_data;
    return has_bound ? static_cast<size_t>(edge.message_bytes) : kAnySize;
}

Segment& Executor::segment(int index) {
    check(is_here(index), "an action names a stage of its rank");
    return *segments_[static_cast<size_t>(index)];
}

bool Executor::is_here(int index) const {
    return segments_[static_cast<size_t>(index)] != nullptr;
}

const Edge& Executor::edge_of(const Action& action) const {
    return phase_.split.edges.at(static_cast<size_t>(action.edge));
}

}  // namespace vpp
