#include "engine/cost_profile.hpp"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <new>
#include <numeric>
#include <span>

#include "base/bytes.hpp"
#include "base/clock_alignment.hpp"
#include "base/elapsed.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/hash.hpp"
#include "base/units.hpp"
#include "comm/collective.hpp"
#include "comm/in_process.hpp"
#include "device/memory_meter.hpp"
#include "engine/agreement.hpp"
#include "engine/engine.hpp"
#include "graph/split.hpp"
#include "graph/stage_borders.hpp"
#include "plan/batch_size.hpp"
#include "program/one_microbatch.hpp"

namespace vpp {

namespace {

constexpr Channel kThere{kTimedThere, 0, Direction::Control};
constexpr Channel kBack{kTimedBack, 0, Direction::Control};
constexpr int kTransferRounds = 30, kUntimedRounds = 5;
constexpr size_t kSmallMessage = 64, kLargeMessage = size_t{1} << 20;
constexpr double kProfileSeconds = 600;  // the others wait while rank 0 profiles

/// The lower quartile: what else a machine does only adds.
double usual_time(std::vector<double> values) {
    check(!values.empty(), "something was timed");
    const auto quarter = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 4);
    std::nth_element(values.begin(), quarter, values.end());
    return *quarter;
}

/// The plan's model, data and microbatches on one rank.
Plan one_rank_plan(const Plan& plan) {
    Plan one = plan;
    one.mesh.pp = one.mesh.dp = 1;
    one.mesh.zero1 = false;
    one.train.global_batch_size = samples_of_microbatch(plan) * *plan.pipeline.num_microbatches;
    one.train.accumulate = 1;
    one.pipeline.num_stages = 1;
    one.pipeline.virtual_chunks = 1;
    one.pipeline.choose_virtual_chunks = false;
    one.pipeline.split_method = PipelinePlan{}.split_method;
    one.pipeline.schedule_type = PipelinePlan{}.schedule_type;
    one.pipeline.cost_file.clear();
    one.pipeline.memory_limit.reset();
    one.pipeline.tied_gradients = PipelinePlan{}.tied_gradients;
    one.pipeline.recompute = {};
    return one;
}

/// Where the model is cut to be timed.
std::vector<int> timed_cuts(const Graph& graph, const Plan& plan) {
    std::vector<int> cuts = candidate_cuts(graph, plan);
    if (static_cast<int>(cuts.size()) < kMostParts) return cuts;
    PartitionProblem problem;
    for (const GraphOp& op : graph.ops) problem.costs.push_back(op.flops);
    const std::vector<int64_t> bytes = all_cut_bytes(graph);
    for (int cut : cuts) problem.cut_bytes.push_back(bytes[static_cast<size_t>(cut)]);
    problem.positions = std::move(cuts);
    return min_max_partition(problem, kMostParts);
}

/// Times of one stage's actions by kind, in ms, and what its F left held.
struct StageSamples {
    std::vector<double> forward, backward, input_gradient, weight_gradient;
    int64_t kept_bytes = 0;

    std::vector<double>& of(ActionKind kind) {
        if (kind == ActionKind::F) return forward;
        if (kind == ActionKind::B) return backward;
        return kind == ActionKind::I ? input_gradient : weight_gradient;
    }
};

/// Begins and ends of actions. A card works on while its actions are handed out, so each is waited for.
class ActionClock {
  public:
    ActionClock(Engine& engine, at::Device device) : executor_(engine.executor()) {
        if (!device.is_cuda()) return;
        executor_.set_watch({{}, [this, device](const Action&) {
                                 const c10::impl::VirtualGuardImpl guard(device.type());
                                 guard.synchronizeDevice(device.index());
                                 ends_.push_back(steady_nanoseconds());
                             }});
    }
    ~ActionClock() { executor_.set_watch({}); }
    ActionClock(const ActionClock&) = delete;
    ActionClock& operator=(const ActionClock&) = delete;

    void begin_pass() { ends_.clear(); }

    double ms(size_t action) const {
        const ActionSpan& span = executor_.spans()[action];
        const int64_t idle = span.wait + span.load;
        if (ends_.empty()) return static_cast<double>(span.end - span.begin - idle) / kNanosecondsPerMillisecond;
        const int64_t begin = action == 0 ? span.begin : ends_[action - 1];
        return static_cast<double>(ends_[action] - begin - idle) / kNanosecondsPerMillisecond;
    }

  private:
    Executor& executor_;
    std::vector<int64_t> ends_;  ///< of the actions of this pass; empty where spans tell
};

/// Runs a program over and over and notes its actions.
class Timer {
  public:
    Timer(const Plan& plan, const Datasets& data, Prepared& prepared) : plan_(plan), data_(data), prepared_(prepared) {}

    std::vector<StageSamples> time(const std::vector<int>& cuts, bool halves) {
        const Program program = on_one_rank(prepared_.program, cuts, kProfiledMicrobatches, halves);
        std::vector<StageSamples> samples(cuts.size() + 1);
        InProcessWorld({.num_ranks = 1}).run([&](Transport& transport) {
            transport.set_deadline(kProfileSeconds);
            Engine engine(plan_, program, prepared_.sources, data_, transport);
            ActionClock clock(engine, engine.device());
            for (int pass = 0; pass < kWarmingPasses; ++pass) engine.run_without_update(0);
            const auto start = Clock::now();
            int passes = 0;
            while (passes < kFewestPasses || (passes < kMostPasses && seconds_since(start) < kSecondsOfPasses)) {
                clock.begin_pass();
                engine.run_without_update(0);
                note_actions(engine.executor(), program.training.schedule.actions[0], clock, samples);
                ++passes;
            }
            num_passes_ = std::min(num_passes_, passes);
        });
        return samples;
    }

    /// B, I and W of the stage behind a cut, one timed right after the other.
    OpCosts time_divided(int cut) {
        const StageSamples whole = time({cut}, false)[1];
        const StageSamples halved = time({cut}, true)[1];
        return {usual_time(whole.forward), usual_time(whole.backward), usual_time(halved.input_gradient),
                usual_time(halved.weight_gradient)};
    }

    int num_passes() const { return num_passes_; }

  private:
    static void note_actions(const Executor& executor, const std::vector<Action>& actions, const ActionClock& clock,
                             std::vector<StageSamples>& samples) {
        for (size_t i = 0; i < actions.size(); ++i) {
            const Action& action = actions[i];
            if (action.microbatch == 0 || !is_computing(action.kind)) continue;
            StageSamples& stage = samples[static_cast<size_t>(action.stage)];
            stage.of(action.kind).push_back(clock.ms(i));
            const ActionMemory& memory = executor.memory_by_op()[i];
            if (action.kind == ActionKind::F) stage.kept_bytes = std::max<int64_t>(0, memory.after - memory.before);
        }
    }

    const Plan& plan_;
    const Datasets& data_;
    Prepared& prepared_;
    int num_passes_ = kMostPasses;
};

/// The times of one kind by stage.
std::vector<double> usual_times(const std::vector<StageSamples>& stages, std::vector<double> StageSamples::*kind) {
    std::vector<double> values;
    for (const StageSamples& stage : stages) values.push_back(usual_time(stage.*kind));
    return values;
}

/// Takes from every value as much, but no more than it has.
void take_off(std::span<double> values, double amount) {
    for (double& value : values) value = std::max(0.0, value - amount);
}

double sum_of(std::span<const double> values) {
    return std::accumulate(values.begin(), values.end(), 0.0);
}

/// The first of the parts between these cuts of which a gradient leaves towards the part before it; without one, the
/// number of parts.
size_t first_with_input_gradient(const Graph& graph, const std::vector<int>& cuts) {
    for (size_t i = 0; i < cuts.size(); ++i) {
        const Split split = make_stages(graph, {cuts[i]});
        const auto is_crossed = [](const Edge& edge) { return edge.has_gradient && !edge.is_tied(); };
        if (std::any_of(split.edges.begin(), split.edges.end(), is_crossed)) return i + 1;
    }
    return cuts.size() + 1;
}

void swing(Transport& transport, size_t num_bytes) {
    if (transport.rank() == 0) {
        transport.post_receive(1, kBack, num_bytes);
        transport.send(1, kThere, Buffer(num_bytes));
        transport.receive(1, kBack);
        transport.finish_sends();
        return;
    }
    transport.post_receive(0, kThere, num_bytes);
    transport.receive(0, kThere);
    transport.send(0, kBack, Buffer(num_bytes));
    transport.finish_sends();
}

double one_way_ms(Transport& transport, size_t num_bytes) {
    std::vector<double> times;
    for (int round = 0; round < kTransferRounds + kUntimedRounds; ++round) {
        const auto start = Clock::now();
        swing(transport, num_bytes);
        if (round >= kUntimedRounds) times.push_back(seconds_since(start) * 1e3 / 2);
    }
    return usual_time(std::move(times));
}

std::filesystem::path run_costs(const Plan& plan) {
    return std::filesystem::path(plan.run.dir) / kRunCosts;
}

/// Why costs that were kept for a run are of no use to it; empty where they are.
std::string uselessness_of(const std::filesystem::path& path, const Plan& plan, const Datasets& data) {
    try {
        const CostFile file = read_cost_file(path.string());
        const bool is_same_model = file.model == to_hex(training_digest(plan, data.training->fields()));
        if (is_same_model && file.microbatch_size == samples_of_microbatch(plan)) return "";
        return path.string() + " is of another model or other microbatches";
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::BadData) throw;
        return error.problems().front().message;
    }
}

/// Whether rank 0 has to measure. Says why a file that is there is of no use.
bool has_to_measure(const Plan& plan, const Datasets& data, const Logger& log) {
    if (!goes_by_costs(plan) || !plan.pipeline.cost_file.empty()) return false;
    const std::filesystem::path path = run_costs(plan);
    std::error_code error;
    if (!std::filesystem::exists(path, error)) return true;
    const std::string reason = uselessness_of(path, plan, data);
    if (reason.empty()) return false;
    log->warn(reason + "; costs are measured again");
    return true;
}

void keep_for_run(const CostProfile& profile, const Plan& plan, double seconds, const Logger& log) {
    const std::filesystem::path path = run_costs(plan);
    std::error_code error;
    std::filesystem::create_directories(path.parent_path(), error);
    write_file_durably(path, to_json_text(profile.file));
    log->info((cuts_by_time(plan) ? "split_method" : "schedule_type") + std::string(" = \"AUTO\": measured ") +
              counted_text(static_cast<int64_t>(profile.file.parts.size()), "part") + " of the model in " +
              fixed_text(seconds, 1) + " s: F " + fixed_text(profile.whole.forward, 3) + " ms, B " +
              fixed_text(profile.whole.backward, 3) + " ms of a microbatch; kept in " + path.string() +
              ", which a resumed run goes by too");
}

CostProfile profile_where_it_fits(const Plan& plan, const Datasets& data, at::Device device,
                                  const TransferTimes& transfers) {
    const Plan one = one_rank_plan(plan);
    const Datasets training{data.training, nullptr};
    Prepared prepared = prepare(one, training, device);
    const Graph& graph = prepared.program.training.graph;
    const std::vector<int> cuts = timed_cuts(graph, plan);
    Timer timer(one, training, prepared);
    const std::vector<StageSamples> whole = timer.time({}, false);
    const std::vector<StageSamples> parts = timer.time(cuts, false);
    const std::vector<StageSamples> halved = timer.time(cuts, true);
    CostProfile profile;
    profile.num_passes = timer.num_passes();
    profile.whole.forward = usual_time(whole[0].forward);
    profile.whole.backward = usual_time(whole[0].backward);
    std::vector<double> forward = usual_times(parts, &StageSamples::forward);
    std::vector<double> backward = usual_times(parts, &StageSamples::backward);
    std::vector<double> input_gradient = usual_times(halved, &StageSamples::input_gradient);
    std::vector<double> weight_gradient = usual_times(halved, &StageSamples::weight_gradient);
    profile.overhead = settle_times(forward, profile.whole.forward);
    const double of_backward = settle_times(backward, profile.whole.backward);
    profile.overhead += of_backward;
    take_off(input_gradient, of_backward);
    take_off(weight_gradient, of_backward);
    const size_t first = first_with_input_gradient(graph, cuts);
    std::fill_n(input_gradient.begin(), first, 0.0);
    std::copy_n(backward.begin(), first, weight_gradient.begin());
    if (first < parts.size()) {
        const OpCosts stage = timer.time_divided(cuts[first - 1]);
        settle_halves(std::span(input_gradient).subspan(first), std::span(weight_gradient).subspan(first),
                      sum_of(std::span(backward).subspan(first)), stage);
    }
    profile.whole.input_gradient = sum_of(input_gradient);
    profile.whole.weight_gradient = sum_of(weight_gradient);
    profile.transfers = transfers;
    CostFile& file = profile.file;
    file.unit = "ms";
    file.transfer = transfers.ms;
    file.transfer_per_mib = transfers.ms_per_mebibyte;
    file.model = to_hex(graph.digest);
    file.microbatch_size = prepared.program.microbatch_size;
    file.measured = numeric_environment(plan, device).text();
    for (size_t i = 0; i <= cuts.size(); ++i) {
        const OpRange ops{i == 0 ? 0 : cuts[i - 1], i < cuts.size() ? cuts[i] : graph.num_ops()};
        file.parts.push_back({ops,
                              module_of(graph, ops),
                              {forward[i], backward[i], input_gradient[i], weight_gradient[i]},
                              parts[i].kept_bytes});
    }
    return profile;
}

Error no_memory(const std::string& what) {
    return Error(ErrorKind::OutOfMemory,
                 "measuring costs runs the whole model with its gradients on one device, and there is no memory for "
                 "that" +
                     what +
                     "; smaller microbatches take less, and with pipeline.cost_file, measured on a larger "
                     "machine by vpp profile, nothing is measured here");
}

}  // namespace

std::string module_of(const Graph& graph, const OpRange& ops) {
    std::string first, common;
    for (int op = ops.begin; op < ops.end; ++op) {
        const std::string& module = graph.ops[static_cast<size_t>(op)].module;
        if (module.empty()) continue;
        if (first.empty()) first = common = module;
        while (!common.empty() && !lies_in(module, common)) {
            common.resize(common.find('.') == std::string::npos ? 0 : common.rfind('.'));
        }
    }
    return common.empty() ? first : common;
}

void settle_halves(std::span<double> input_gradient, std::span<double> weight_gradient, double backward,
                   const OpCosts& stage) {
    const double halves = sum_of(input_gradient) + sum_of(weight_gradient);
    if (halves <= 0 || stage.backward <= 0) return;
    const double share = std::max(1.0, (stage.input_gradient + stage.weight_gradient) / stage.backward);
    for (double& time : input_gradient) time *= backward * share / halves;
    for (double& time : weight_gradient) time *= backward * share / halves;
}

double settle_times(std::span<double> parts, double whole) {
    const double sum = sum_of(parts);
    if (sum <= whole) {
        for (double& part : parts) part *= sum > 0 ? whole / sum : 1;
        return 0;
    }
    // What is too much is spread over those that have it: the shortest drop out first.
    std::vector<double> sorted(parts.begin(), parts.end());
    std::sort(sorted.begin(), sorted.end());
    double rest = sum - whole, amount = 0;
    for (size_t i = 0; i < sorted.size(); ++i) {
        amount = rest / static_cast<double>(sorted.size() - i);
        if (sorted[i] >= amount) break;
        rest -= sorted[i];
    }
    take_off(parts, amount);
    return amount;
}

CostProfile profile_costs(const Plan& plan, const Datasets& data, at::Device device, const TransferTimes& transfers) {
    try {
        CostProfile profile = profile_where_it_fits(plan, data, device, transfers);
        give_back_memory(device);  // other ranks may share it
        return profile;
    } catch (const std::bad_alloc&) {
        throw no_memory("");
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::OutOfMemory) throw;
        throw no_memory(std::string(" (") + error.what() + ')');
    }
}

TransferTimes time_transfers(Transport& transport) {
    transport.set_position("timing messages");
    const double small = one_way_ms(transport, kSmallMessage);
    const double large = one_way_ms(transport, kLargeMessage);
    return {small, std::max(0.0, large - small), true};
}

void profile_together(Transport& transport, const Plan& plan, const Datasets& data, at::Device device,
                      const std::function<void(const CostProfile&)>& keep) {
    TransferTimes transfers;
    if (transport.size() > 1 && transport.rank() < 2) transfers = time_transfers(transport);
    const double deadline = transport.deadline_seconds();
    transport.set_deadline(std::max(deadline, kProfileSeconds));
    transport.set_position("waiting for rank 0, which measures the model");
    from_first_rank(transport, [&] {
        keep(profile_costs(plan, data, device, transfers));
        return "";
    });
    transport.set_deadline(deadline);
}

void provide_costs(Transport& transport, const Plan& plan, const Datasets& data, at::Device device, const Logger& log,
                   const std::function<void()>& claim) {
    constexpr const char* kMeasure = "measure";
    const std::string todo = from_first_rank(transport, [&] {
        if (!has_to_measure(plan, data, log)) return "";
        claim();
        return kMeasure;
    });
    if (todo != kMeasure) return;
    const auto start = Clock::now();
    profile_together(transport, plan, data, device,
                     [&](const CostProfile& profile) { keep_for_run(profile, plan, seconds_since(start), log); });
}

}  // namespace vpp
