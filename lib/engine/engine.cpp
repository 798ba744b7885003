#include "engine/engine.hpp"

#include <ATen/Parallel.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/clock_alignment.hpp"
#include "base/elapsed.hpp"
#include "base/error.hpp"
#include "base/process.hpp"
#include "base/random.hpp"
#include "base/units.hpp"
#include "device/memory_meter.hpp"
#include "device/repeated_elements.hpp"
#include "engine/drift.hpp"
#include "engine/non_finite.hpp"
#include "graph/torch_errors.hpp"
#include "optim/memory_order.hpp"
#include "optim/norm.hpp"
#include "plan/batch_size.hpp"
#include "plan/value.hpp"

namespace vpp {

namespace {

int pp_rank_of(const Program& program, const Transport& transport) {
    check(transport.size() == program.mesh.num_ranks(), "the transport has the ranks of the mesh");
    return program.mesh.coordinate(transport.rank()).pp;
}

std::unique_ptr<Executor> make_executor(const Plan& plan, const Program& program, const Phase& phase, Source& source,
                                        const Weights& weights, Transport& transport) {
    SegmentOptions options;
    options.recorder = SharedRecorder::where(plan.pipeline.cuda_graphs, source.device());
    check(!options.recorder || program.replicas_per_rank == 1,
          "recorded gradients of a rank's replicas are one memory");
    options.recomputed_microbatches = phase.schedule.num_microbatches - (plan.pipeline.recompute.except_last ? 1 : 0);
    if (plan.model.loss_reduction == "mean") {
        options.loss_scale = 1.0 / (phase.schedule.num_microbatches * program.num_replicas());
    }
    return std::make_unique<Executor>(phase, source, weights, options, transport,
                                      program.mesh.pipeline_of(transport.rank()), pp_rank_of(program, transport),
                                      plan.pipeline.overlap_p2p_comm);
}

/// Owns what it uses.
Prefetch::Read reader(std::shared_ptr<const Dataset> data, const Loader& loader, const SampleOrder& order,
                      const Program& program, int64_t batch) {
    return [data = std::move(data), loader, order, batch, samples = program.microbatch_size,
            microbatches = program.training.schedule.num_microbatches](const InputNeed& need) {
        const int64_t number = int64_t{need.replica} * microbatches + need.microbatch;
        return loader.read(need.input, order.draws(need.step * batch + number * samples, samples));
    };
}

}  // namespace

int64_t total_steps(const Plan& plan, int64_t num_samples) {
    if (plan.train.steps) return *plan.train.steps;
    const int64_t batch = *plan.train.global_batch_size;
    if (!plan.train.epochs) return 0;
    int64_t drawn = 0;
    if (__builtin_mul_overflow(*plan.train.epochs, num_samples, &drawn)) {
        throw Error(ErrorKind::Plan,
                    "train.epochs are too many: samples of a training are counted in 63 bits (got " +
                        std::to_string(*plan.train.epochs) + " epochs of " + std::to_string(num_samples) +
                        " samples); lower it, or set train.steps in its place",
                    plan.where("train.epochs"));
    }
    const int64_t steps = std::max<int64_t>(1, drawn / batch);
    if (plan.lr_schedule.warmup_steps <= steps) return steps;
    throw Error(
        ErrorKind::Plan,
        "the warm-up is longer than the training (got warmup_steps " + std::to_string(plan.lr_schedule.warmup_steps) +
            ", train.epochs " + std::to_string(*plan.train.epochs) + " = " + std::to_string(steps) +
            (steps == 1 ? " step)" : " steps)") + "; lower it, or for a short trial --set lr_schedule.warmup_steps=0",
        plan.where("lr_schedule.warmup_steps"));
}

Engine::Engine(const Plan& plan, const Program& program, Sources& sources, const Datasets& data, Transport& job)
    : plan_(plan),
      program_(program),
      data_(data),
      program_transport_(job, plan, program, sources.device()),
      transport_(program_transport_.get()),
      total_steps_(vpp::total_steps(plan, data.training->fields().num_samples)),
      order_(training_order(*data.training, plan)),
      loader_(*data.training, program.training.graph),
      targets_(TargetCount::of(program.training.graph, *sources.training, *data.training)),
      guard_(plan.train),
      flushes_told_(MemoryMeter(sources.device()).flushes()),
      memory_taken_(MemoryMeter(sources.device()).taken()) {
    transport_.set_through_host(true);
    // OpenMP keeps its number of threads by thread: one that LibTorch has not seen yet would take all cores.
    at::init_num_threads();
    const Phase& training = program.training;
    const std::vector<int> stages = program.stages_of(pp_rank_of(program, transport_));
    weights_.load(*sources.training, training.split, stages);
    tied_ = std::make_unique<TiedWeights>(training.split, training.schedule, weights_, transport_,
                                          program.mesh.pipeline_of(transport_.rank()));
    statistics_ = std::make_unique<BatchStatistics>(training.graph, weights_);
    buffers_ = std::make_unique<WrittenBuffers>(training.graph, weights_);
    training_ = make_executor(plan, program, training, *sources.training, statistics_->seen_by_ops(), transport_);
    training_->mark_device();
    check(targets_ || !plan.model.is_target_mean(), "a mean over targets has some to count");
    if (program.evaluation) {
        weights_.load_missing(*sources.evaluation, program.evaluation->graph, program.evaluation->split, stages);
        evaluator_ =
            std::make_unique<Evaluator>(plan, program, *sources.evaluation, weights_, data.validation, transport_);
    }
    for (int parameter : weights_.owned()) {
        if (training.graph.parameters[static_cast<size_t>(parameter)].requires_grad) trained_.push_back(parameter);
    }
    if (plan.train.precision == "fp16") loss_scaler_.emplace(plan.train);
    prefetch_ = make_prefetch();
    const std::vector<int> replicas = program.mesh.replicas_of(transport_.rank());
    shares_ = find_shares(training.graph, training.split, stages, program.mesh.dp, plan.mesh.bucket_bytes);
    optimizer_ =
        std::make_unique<ReplicaOptimizer>(plan, training.graph, shares_, weights_, trained_, transport_, replicas);
    if (replicas.size() == 1) return;
    replica_buffers_ = std::make_unique<ReplicaBuffers>(training.graph, weights_, transport_, replicas);
    reduction_ = std::make_unique<GradientReduction>(training.graph, shares_, weights_, transport_, replicas);
    training_->set_reduction(reduction_.get());
}

Engine::~Engine() = default;

std::unique_ptr<Prefetch> Engine::make_prefetch() const {
    std::vector<InputNeed> needs = needs_of_step(plan_, program_, pp_rank_of(program_, transport_), dp_coordinate());
    const size_t ahead = num_inputs_ahead(program_, program_.training.graph, needs, plan_.data.read_ahead_bytes);
    return std::make_unique<Prefetch>(std::move(needs), total_steps_,
                                      reader(data_.training, loader_, order_, program_, *plan_.train.global_batch_size),
                                      ahead);
}

/// Leaves the sum of the replica's microbatches in `.grad`, or with other ranks for the other replicas the sum of all.
void Engine::run_replica(int64_t step, int replica, const at::Tensor& loss_factor) {
    for (int parameter : trained_) at::Tensor(weights_.at(parameter)).mutable_grad().reset();
    const auto load = [&](int microbatch, int input) { return take({step, replica, microbatch, input}); };
    statistics_->begin_step();
    const auto key = [&](int microbatch) { return microbatch_key(plan_.train.seed, step, replica, microbatch); };
    const auto place = [&](int microbatch) {
        return "step " + std::to_string(step + 1) + ", " +
               sample_names(*data_.training, samples_of(step, replica, microbatch));
    };
    training_->run({load, key, {}, place}, loss_factor);
    tied_->sum_gradients();
    if (reduction_) {
        reduction_->start(ReplicaShares::kBehindTies);
        reduction_->finish();
    }
    training_->note_device_times();
}

at::Tensor Engine::take(const InputNeed& need) {
    return loader_.to_tensor(need.input, prefetch_->take(need, kShareOfDeadline * transport_.deadline_seconds()));
}

/// How many targets the loss counts in the microbatches that the program runs of the step, on a rank that makes losses:
/// read from the data, since the first backward comes before the other microbatches.
int64_t Engine::targets_of(int64_t step) {
    if (!plan_.model.is_target_mean() || !training_->makes_loss()) return 0;
    const int of_replica = program_.training.schedule.num_microbatches;
    return targets_->in(program_.num_replicas() * of_replica, [&](int microbatch, int input) {
        return take({step, microbatch / of_replica, microbatch % of_replica, input});
    });
}

/// What the loss of a microbatch is multiplied by in this step; undefined: by nothing.
at::Tensor Engine::loss_factor(int64_t targets) const {
    if (!loss_scaler_ && !plan_.model.is_target_mean()) return {};
    at::Tensor factor = loss_scaler_ ? loss_scaler_->factor() : at::scalar_tensor(1.0, at::kDouble);
    if (plan_.model.is_target_mean()) factor = at::mul(factor, 1.0 / static_cast<double>(targets));
    return factor.to(weights_.device());
}

/// The replicas of this rank. One of several leaves no trace but its gradients and losses, until replica 0 has run.
void Engine::run_replicas(int64_t step, StepShare& share) {
    share.targets = targets_of(step);
    const at::Tensor factor = loss_factor(share.targets);
    std::vector<std::vector<at::Tensor>> gradients;
    for (int replica = program_.replicas_per_rank - 1; replica >= 0; --replica) {
        buffers_->put_back();
        run_replica(step, dp_coordinate() + replica, factor);
        share.losses.insert(share.losses.begin(), training_->losses().begin(), training_->losses().end());
        std::vector<at::Tensor>& own = gradients.emplace_back();
        for (int parameter : trained_) own.push_back(weights_.at(parameter).grad());
    }
    share.first_loss = dp_coordinate() * program_.training.schedule.num_microbatches;
    if (gradients.size() > 1) sum_up(gradients);
}

/// ((g_0 + g_1) + g_2) + ... of gradients that come in reverse.
void Engine::sum_up(const std::vector<std::vector<at::Tensor>>& gradients) {
    for (size_t i = 0; i < trained_.size(); ++i) {
        at::Tensor sum;
        for (auto replica = gradients.rbegin(); replica != gradients.rend(); ++replica) {
            const at::Tensor& gradient = (*replica)[i];
            if (gradient.defined()) sum = sum.defined() ? sum.add(gradient) : gradient;
        }
        at::Tensor(weights_.at(trained_[i])).mutable_grad() = sum;
    }
}

StepShare Engine::run_actions(int64_t step) {
    const auto start = Clock::now();
    transport_.take_wait_seconds();
    training_->take_wait_seconds();
    StepShare share;
    ++num_steps_run_;
    program_transport_.use([&] { run_replicas(step, share); });
    share.overflow = unscale_gradients();
    share.wait_seconds = training_->take_wait_seconds() + transport_.take_wait_seconds();
    share.actions_seconds = training_->actions_seconds();
    const int pp_rank = pp_rank_of(program_, transport_);
    const std::vector<StageTimes> times = stage_times(program_.training.schedule, pp_rank, training_->spans());
    for (int stage : program_.stages_of(pp_rank)) share.stages.push_back({stage, times[static_cast<size_t>(stage)]});
    share.parked_bytes = training_->peak_parked_bytes();
    share.activation_bytes = training_->activation_bytes();
    share.recorded_segments = training_->recorded_segments();
    share.by_op_segments = training_->by_op_segments();
    share.stop = stop_request_();
    share.save = save_request_();
    if (reduction_) share.reduce_seconds = reduction_->take_exposed_seconds();
    if (dp_coordinate() == 0) share.norms = gradient_norms();
    share.run_seconds = seconds_since(start);
    share.memory_bytes = peak_resident_bytes();
    const MemoryMeter meter(weights_.device());
    const int64_t flushes = meter.flushes();
    share.memory_flushes = flushes - std::exchange(flushes_told_, flushes);
    share.nearly_full = meter.is_nearly_full(has_updated_ ? 0 : first_update_bytes());
    const int64_t taken = meter.taken();
    share.takes_memory = taken != std::exchange(memory_taken_, taken) || training_->will_record();
    return share;
}

/// The state of AdamW is twice what it trains, and while it updates it may take as much again.
int64_t Engine::first_update_bytes() const {
    int64_t bytes = 0;
    for (int parameter : trained_) bytes += 4 * static_cast<int64_t>(weights_.at(parameter).nbytes());
    return bytes;
}

/// Of this rank's parameters that have one.
std::vector<at::Tensor> Engine::gradients() const {
    std::vector<at::Tensor> gradients;
    for (int parameter : trained_) {
        const at::Tensor& gradient = weights_.at(parameter).grad();
        if (gradient.defined()) gradients.push_back(gradient);
    }
    return gradients;
}

std::vector<StepShare::Norm> Engine::gradient_norms() const {
    std::vector<StepShare::Norm> norms;
    std::vector<at::Tensor> gradients;
    for (int parameter : trained_) {
        const at::Tensor& weight = weights_.at(parameter);
        if (!weight.grad().defined()) continue;
        check_gradient(program_.training.graph.parameters[static_cast<size_t>(parameter)].name, weight);
        norms.push_back({parameter, {}});
        gradients.push_back(weight.grad());
    }
    const std::vector<at::Tensor> values = parameter_norms(gradients);
    for (size_t i = 0; i < norms.size(); ++i) norms[i].value = values[i];
    return norms;
}

/// Whether a gradient of this rank overflowed.
bool Engine::unscale_gradients() {
    return loss_scaler_ && loss_scaler_->unscale(gradients());
}

/// The first update makes the optimizer's state.
void Engine::step_optimizer(int64_t step) {
    run_known([&] { optimizer_->step(step, total_steps_); }, "the update of step " + std::to_string(step + 1) + ": ");
    if (!std::exchange(has_updated_, true)) expect_memory_taken();  // it has made the optimizer's state
}

void Engine::update(int64_t step, const StepTotals& totals, StepResult& result) {
    if (totals.grad_norm.defined() && plan_.optimizer.clip_norm > 0) {
        scale_gradients(gradients(), clip_coefficient(totals.grad_norm, plan_.optimizer.clip_norm));
        result.clipped = result.grad_norm > plan_.optimizer.clip_norm;
    }
    statistics_->commit();
    if (replica_buffers_) replica_buffers_->follow_first();  // what the optimizer updates may be among them
    step_optimizer(step);
    tied_->refresh();
    const bool is_checked = plan_.train.drift_every > 0 && (step + 1) % plan_.train.drift_every == 0;
    if (is_checked && program_.mesh.dp > 1) {
        check_drift(transport_, program_.mesh, program_.training.graph, weights_, step + 1);
    }
}

/// Runs the actions of the step once more, with the same bits, and looks at what goes from stage to stage.
Engine::Trouble Engine::find_non_finite(int64_t step) {
    std::vector<WatchedParameter> parameters;
    for (int parameter : trained_) {
        const std::string& name = program_.training.graph.parameters[static_cast<size_t>(parameter)].name;
        parameters.push_back({name, weights_.at(parameter)});
    }
    const NonFiniteWatch watch(*training_, program_.training.split, dp_coordinate(), std::move(parameters));
    expect_memory_taken();  // and what it takes is told to nobody
    run_actions(step);
    transport_.set_position("looking for what is not finite in step " + std::to_string(step + 1));
    const std::optional<NonFiniteValue> first = watch.first(transport_);
    if (!first) return {"; each value for itself is finite"};
    const std::vector<Draw> samples = samples_of(step, first->replica, first->microbatch);
    const std::string words = "; first not finite is " + to_text(*first, program_.num_replicas()) + " (" +
                              sample_names(*data_.training, samples) + ")";
    const std::string input = non_finite_input(*data_.training, program_.training.graph, samples);
    if (!input.empty()) {
        return {words + "; " + input + " is not finite in the data already",
                "Mend the data or leave that sample out; train.on_nonfinite = \"skip\" passes over such steps"};
    }
    const std::string ignored = first->is_loss() && targets_ ? targets_->all_ignored_text(samples) : std::string();
    if (ignored.empty()) return {words};
    return {words + "; " + ignored,
            "train.on_nonfinite = \"skip\" passes over such steps; for a new run leave such samples out, take larger "
            "microbatches, or model.loss_reduction = \"target_mean\""};
}

/// Where the numbers are not finite any more, and what helps.
Engine::Trouble Engine::find_trouble(int64_t step, const StepTotals& totals) {
    if (plan_.model.is_target_mean() && totals.targets == 0) {
        return {"; all targets of the step are " + targets_->counted().ignored_text(),
                "train.on_nonfinite = \"skip\" passes over such steps; for a new run leave such samples out, or take a "
                "larger train.global_batch_size"};
    }
    const std::optional<std::string> damaged = find_damaged_parameter();
    if (!damaged) return find_non_finite(step);
    return {"; the parameter '" + *damaged + "' is not finite before this step already, " +
                (step == 0 ? "as the training began" : "by an earlier update"),
            remedy_of_damage(step), *began_finite_};
}

void Engine::look_at_start() {
    if (began_finite_) return;
    began_finite_ = !find_damaged_parameter();
    for (int weight : weights_.owned()) {
        const bool is_written = program_.training.graph.parameters[static_cast<size_t>(weight)].written;
        if (is_written && is_finite(weights_.at(weight))) finite_buffers_.push_back(weight);
    }
}

/// The first of these weights on any rank that is not finite. Of parameters before an update: then the step says
/// nothing of its own samples.
std::optional<std::string> Engine::first_damaged(const std::vector<int>& weights) {
    std::map<int, at::Tensor> tensors;
    for (int weight : weights) tensors.emplace(weight, weights_.at(weight));
    const std::optional<int> first = first_non_finite(transport_, tensors);
    if (!first) return std::nullopt;
    return program_.training.graph.parameters[static_cast<size_t>(*first)].name;
}

std::optional<std::string> Engine::find_damaged_buffer() {
    return first_damaged(finite_buffers_);
}

/// What helps where weights are not finite.
std::string Engine::remedy_of_damage(int64_t step) const {
    if (step == 0) return "Look at the weights of model.file, or of model.init_from";
    const std::string folder = plan_.run.dir + "/checkpoints/step-...";
    return "Go on from a checkpoint before that update, checkpoint.resume = " + toml_quoted(folder) +
           ", or begin anew, checkpoint.resume = \"no\"; with a lower optimizer.lr, or with optimizer.clip_norm";
}

void Engine::check_weights(int64_t step) {
    if (!began_finite_ || !*began_finite_) return;
    const std::optional<std::string> damaged = find_damaged_parameter();
    if (!damaged) return;
    throw Error(ErrorKind::NotFinite, "an update up to step " + std::to_string(step) + " has made the parameter '" +
                                          *damaged + "' not finite, which is not saved. " + remedy_of_damage(step));
}

/// Those of the microbatch.
std::vector<Draw> Engine::samples_of(int64_t step, int replica, int microbatch) const {
    const int64_t before = int64_t{replica} * program_.training.schedule.num_microbatches + microbatch;
    const int64_t first = step * *plan_.train.global_batch_size + before * program_.microbatch_size;
    return order_.draws(first, program_.microbatch_size);
}

void Engine::set_stop_request(StopRequest request) {
    stop_request_ = std::move(request);
    if (evaluator_) evaluator_->set_stop_request(stop_request_);
}

MemoryEvent Engine::measure_memory() {
    return vpp::measure_memory(transport_, program_, *training_, program_.training.schedule);
}

EvaluationResult Engine::evaluate() {
    check(can_evaluate(), "only plans with validation data evaluate");
    evaluator_->set_may_record(num_steps_run_ > Recordings::kStepsByOp);
    const int64_t batch =
        program_.microbatch_size * program_.evaluation->schedule.num_microbatches * program_.num_replicas();
    const int64_t all = data_.validation->fields().num_samples;
    EvaluationResult result = program_transport_.use(
        [&] { return evaluator_->run(samples_of_batches(all, batch, plan_.train.eval_batches)); });
    if (result.took_memory) transport_.set_through_host(true);  // the next step may find none of what it had
    return result;
}

std::string Engine::recording_problems() const {
    const std::string problems = training_->recording_problems();
    const std::string of_evaluation = evaluator_ ? evaluator_->executor().recording_problems() : std::string();
    if (of_evaluation.empty()) return problems;
    return (problems.empty() ? problems : problems + "; ") + "in evaluation, " + of_evaluation;
}

/// Whether the step may update; the same on every rank.
void Engine::judge(int64_t step, StepResult& result) {
    const std::string name = "step " + std::to_string(step + 1) + ": ";
    const bool overflow = result.totals.overflow;
    if (overflow && std::isfinite(result.loss) && loss_scaler_->can_be_too_large()) {
        result.updated = false;
        result.remark = name + "gradients overflowed at the loss scale " + formatted("%.6g", loss_scaler_->scale()) +
                        ", which is halved for the next step";
    } else {
        const StepGuard::Judgement judgement = guard_.judge(result.loss, result.grad_norm);
        if (!judgement.reason.empty()) result.remark = name + judgement.reason;
        const Trouble trouble = judgement.is_finite ? Trouble{} : find_trouble(step, result.totals);
        result.remark += trouble.words;
        result.updated =
            judgement.verdict == StepGuard::Verdict::Update || judgement.verdict == StepGuard::Verdict::Warn;
        const bool is_skip_in_vain = judgement.verdict == StepGuard::Verdict::Skip && trouble.is_lasting;
        if (judgement.verdict == StepGuard::Verdict::Stop || is_skip_in_vain) {
            buffers_->put_back();
            throw Error(ErrorKind::NotFinite, result.remark + ". Nothing was updated. " + trouble.remedy);
        }
    }
    if (loss_scaler_) loss_scaler_->update(overflow);
}

/// Who takes memory of a device, or has a full one give some back, may wait for all that it does. Ranks whose devices
/// wait for each other's messages would stand still then: none of these holds up a device before a step takes none.
void Engine::mind_memory(const StepTotals& totals) {
    if (!totals.may_hold_devices()) return expect_memory_taken();
    transport_.set_through_host(false);
}

/// What runs next may find none of the memory that it had.
void Engine::expect_memory_taken() {
    transport_.set_through_host(true);
    if (evaluator_) evaluator_->expect_memory_taken();
}

void Engine::remark_memory(int64_t step, StepResult& result) {
    const std::string words = memory_remarks_.look(result.totals, transport_.may_hold_device());
    if (words.empty()) return;
    result.remark += result.remark.empty() ? "step " + std::to_string(step + 1) + ": " : "; ";
    result.remark += words;
}

StepTotals Engine::run_without_update(int64_t step) {
    buffers_->remember();
    const StepShare share = run_actions(step);
    transport_.set_position("the end of a step without an update");
    StepTotals totals = exchange_step(transport_, share, weights_.device());
    mind_memory(totals);
    buffers_->put_back();
    prefetch_->take_spans();
    return totals;
}

double Engine::loss_of(const StepTotals& totals) const {
    const double sum = std::accumulate(totals.losses.begin(), totals.losses.end(), 0.0);
    if (plan_.model.loss_reduction == "mean") return sum / static_cast<double>(totals.losses.size());
    return plan_.model.is_target_mean() ? sum / static_cast<double>(totals.targets) : sum;
}

StepResult Engine::run_step(int64_t step, const std::function<void()>& before_update) {
    const auto start = Clock::now();
    StepResult result;
    look_at_start();
    result.moments.begin = steady_nanoseconds();
    buffers_->remember();
    result.went_through_host = transport_.goes_through_host();
    StepShare share = run_actions(step);
    if (before_update) before_update();
    result.moments.exchange = steady_nanoseconds();
    transport_.set_position("the end of step " + std::to_string(step + 1));
    result.totals = exchange_step(transport_, share, weights_.device());
    mind_memory(result.totals);
    result.moments.update = steady_nanoseconds();
    result.microbatch_losses = result.totals.losses;
    if (loss_scaler_) result.loss_scale = loss_scaler_->scale();
    result.loss = loss_of(result.totals);
    if (result.totals.grad_norm.defined()) result.grad_norm = result.totals.grad_norm.item<double>();
    judge(step, result);
    if (!result.updated) buffers_->put_back();
    result.lr = optimizer_->learning_rates(step, total_steps_).back();
    if (result.updated) {
        update(step, result.totals, result);
    } else {
        result.remark += "; the step was skipped";
    }
    remark_memory(step, result);
    result.seconds = seconds_since(start);
    result.moments.end = steady_nanoseconds();
    result.reads = prefetch_->take_spans();
    return result;
}

std::vector<StateTensor> Engine::state() const {
    std::vector<StateTensor> tensors;
    for (int parameter : weights_.owned()) {
        const GraphParameter& entry = program_.training.graph.parameters[static_cast<size_t>(parameter)];
        if (optimizer_->writer_of(parameter) != dp_coordinate()) continue;
        tensors.push_back({"model." + entry.name, weights_.at(parameter).detach()});
    }
    for (const StateTensor& entry : optimizer_->saved_state()) {
        tensors.push_back({"optimizer." + entry.name, entry.tensor});
    }
    return tensors;
}

int64_t Engine::full_state_bytes() const {
    int64_t size = optimizer_->full_state_bytes();
    for (int parameter : weights_.owned()) {
        if (optimizer_->writer_of(parameter) == dp_coordinate())
            size += static_cast<int64_t>(weights_.at(parameter).nbytes());
    }
    return size;
}

void Engine::load_state(const StateReader& read) {
    for (int parameter : weights_.held()) {
        const GraphParameter& entry = program_.training.graph.parameters[static_cast<size_t>(parameter)];
        at::Tensor tensor = weights_.at(parameter).detach();
        const auto value = read("model." + entry.name, tensor.scalar_type(), tensor.sizes().vec());
        check(value || (entry.is_buffer && !entry.written), "there is a value for every parameter and buffer");
        if (value) take_values(tensor, *value, entry.name);
    }
    optimizer_->load_state([&](const std::string& name, at::ScalarType dtype, const std::vector<int64_t>& shape) {
        return read("optimizer." + name, dtype, shape);
    });
}

std::vector<StateTensor> Engine::tensors() const {
    std::vector<StateTensor> tensors;
    for (int parameter : weights_.owned()) {
        const GraphParameter& entry = program_.training.graph.parameters[static_cast<size_t>(parameter)];
        const at::Tensor& tensor = weights_.at(parameter);
        tensors.push_back({(entry.is_buffer ? "buffer " : "parameter ") + entry.name, tensor.detach()});
        if (tensor.grad().defined()) tensors.push_back({"gradient " + entry.name, tensor.grad()});
    }
    for (const StateTensor& entry : optimizer_->state()) tensors.push_back({"optimizer " + entry.name, entry.tensor});
    return tensors;
}

}  // namespace vpp
