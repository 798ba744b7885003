// Speeds of the module schedule. A schedule of P ranks, v stages per rank and M microbatches is named row of the
// registry/P/v/M.
//   vpp_schedule_bench [--benchmark_filter=check]
#include <benchmark/benchmark.h>

#include "schedule/checker.hpp"
#include "schedule/critical_path.hpp"
#include "schedule/edges.hpp"
#include "schedule/generators.hpp"
#include "schedule/lowering.hpp"
#include "schedule/memory.hpp"
#include "schedule/search.hpp"
#include "schedule/simulator.hpp"
#include "schedule/symbolic.hpp"
#include "schedule/tied_order.hpp"

namespace {

using namespace vpp;

/// The arguments of a benchmark: which row of the registry, P, v, M.
Schedule make(benchmark::State& state) {
    const ScheduleKind& kind = schedule_kinds().at(static_cast<size_t>(state.range(0)));
    state.SetLabel(kind.name);
    const auto number = [&](size_t which) { return static_cast<int>(state.range(which)); };
    return make_schedule(kind.name, number(1), number(2), number(3));
}

int64_t count_actions(const Schedule& schedule) {
    int64_t count = 0;
    for (const std::vector<Action>& list : schedule.actions) count += static_cast<int64_t>(list.size());
    return count;
}

/// Runs `work` on a lowered schedule; the rate is in actions.
template <typename Work>
void run_on_lowered(benchmark::State& state, Work work) {
    const Schedule compute = make(state);
    const std::vector<ScheduleEdge> edges = chain_edges(compute.num_stages());
    const Schedule lowered = lower(compute, edges);
    for (auto _ : state) benchmark::DoNotOptimize(work(lowered, edges));
    state.SetItemsProcessed(state.iterations() * count_actions(lowered));
}

void generate(benchmark::State& state) {
    for (auto _ : state) benchmark::DoNotOptimize(make(state));
    state.SetItemsProcessed(state.iterations() * count_actions(make(state)));
}

void lower_for(benchmark::State& state, MessageOrder order) {
    const Schedule compute = make(state);
    const std::vector<ScheduleEdge> edges = chain_edges(compute.num_stages());
    for (auto _ : state) {
        benchmark::DoNotOptimize(lower(compute, edges, {.reduce_gradients = true, .order = order}));
    }
    state.SetItemsProcessed(state.iterations() * count_actions(lower(compute, edges)));
}

void check(benchmark::State& state) {
    run_on_lowered(state, [](const Schedule& lowered, const auto& edges) { return check_schedule(lowered, edges); });
}

void check_all_options(benchmark::State& state) {
    const Schedule compute = make(state);
    const std::vector<ScheduleEdge> edges = chain_edges(compute.num_stages());
    const Schedule lowered = lower(compute, edges, {.reduce_gradients = true, .order = MessageOrder::Global});
    const CheckOptions options{.ordered_channels = true, .rendezvous = true, .reduces = true};
    for (auto _ : state) benchmark::DoNotOptimize(check_schedule(lowered, edges, options));
    state.SetItemsProcessed(state.iterations() * count_actions(lowered));
}

void simulate_channels(benchmark::State& state, Ticks transfer) {
    ScheduleCosts costs;
    costs.transfer = costs.occupied = transfer;
    run_on_lowered(state, [&](const Schedule& lowered, const auto&) { return simulate(lowered, costs).makespan; });
}

/// A parameter of the first and the last stage.
void order_tied_weights(benchmark::State& state) {
    const Schedule compute = make(state);
    std::vector<ScheduleEdge> edges = chain_edges(compute.num_stages());
    edges.push_back({compute.num_stages(), 0, compute.num_stages() - 1, true, 0, true});
    for (auto _ : state) benchmark::DoNotOptimize(order_tied(compute, edges).actions.size());
    state.SetItemsProcessed(state.iterations() * count_actions(compute));
}

void memory(benchmark::State& state) {
    run_on_lowered(state, [](const Schedule& lowered, const auto& edges) { return peak_memory(lowered, edges); });
}

void find_critical_path(benchmark::State& state) {
    run_on_lowered(
        state, [](const Schedule& lowered, const auto&) { return critical_path(lowered, simulate(lowered)).size(); });
}

/// Seeds and 20000 moves for P, v and M; the rate is in moves.
void search(benchmark::State& state) {
    const auto number = [&](size_t which) { return static_cast<int>(state.range(which)); };
    SearchRequest request;
    request.num_ranks = number(0);
    request.stages_per_rank = {number(1)};
    request.num_microbatches = number(2);
    request.costs = [](const ScheduleSize& size) { return parse_costs("comm=0.2", size); };
    request.memory_limit = request.num_ranks;
    request.moves = 20000;
    int64_t num_moves = 0;
    for (auto _ : state) num_moves += search_schedule(request).moves;
    state.SetItemsProcessed(num_moves);
}

/// Whole proofs of small random models: the reference, the lists, the comparison.
void symbolic(benchmark::State& state) {
    const Schedule compute = make(state);
    std::vector<SymbolicModel> models;
    std::vector<Schedule> lowered;
    for (uint64_t seed = 0; seed < 16; ++seed) {
        models.push_back(make_random_model(compute.num_stages(), seed));
        lowered.push_back(lower(compute, models.back().schedule_edges()));
    }
    size_t next = 0;
    for (auto _ : state) {
        benchmark::DoNotOptimize(symbolic_differences(models[next], lowered[next]));
        next = (next + 1) % models.size();
    }
    state.SetItemsProcessed(state.iterations());
}

/// Where `name` stands in the registry.
int64_t row(const std::string& name) {
    for (size_t k = 0; k < schedule_kinds().size(); ++k) {
        if (schedule_kinds()[k].name == name) return static_cast<int64_t>(k);
    }
    return 0;
}

void at_scale(benchmark::internal::Benchmark* one) {
    one->Unit(benchmark::kMillisecond);
    one->Args({row("1F1B"), 128, 1, 1024})->Args({row("INTERLEAVED_1F1B"), 64, 2, 512});
    one->Args({row("INTERLEAVED_1F1B"), 128, 2, 1024});
}

void split_at_scale(benchmark::internal::Benchmark* one) {
    one->Unit(benchmark::kMillisecond);
    one->Args({row("ZERO_BUBBLE_H1"), 128, 1, 1024})->Args({row("INTERLEAVED_ZERO_BUBBLE"), 64, 2, 512});
}

void small(benchmark::internal::Benchmark* one) {
    one->Unit(benchmark::kMicrosecond);
    one->Args({row("1F1B"), 2, 1, 4})->Args({row("1F1B"), 4, 1, 8})->Args({row("INTERLEAVED_1F1B"), 4, 2, 8});
}

/// Every row of the registry, in the smallest size that all of them take.
void every_kind(benchmark::internal::Benchmark* one) {
    one->Unit(benchmark::kMillisecond);
    for (size_t k = 0; k < schedule_kinds().size(); ++k) {
        one->Args({static_cast<int64_t>(k), 8, schedule_kinds()[k].fewest_per_rank, 32});
    }
}

BENCHMARK(generate)->Apply(at_scale)->Apply(every_kind);
BENCHMARK_CAPTURE(lower_for, tagged, MessageOrder::BeforeConsumer)->Apply(at_scale);
BENCHMARK_CAPTURE(lower_for, channels, MessageOrder::Channels)->Apply(at_scale);
BENCHMARK_CAPTURE(lower_for, global, MessageOrder::Global)->Apply(at_scale);
BENCHMARK(check)->Apply(at_scale);
BENCHMARK(check_all_options)->Apply(at_scale);
BENCHMARK_CAPTURE(simulate_channels, free, 0)->Apply(at_scale);
BENCHMARK_CAPTURE(simulate_channels, serial, 1)->Apply(at_scale);
BENCHMARK(order_tied_weights)->Apply(split_at_scale);
BENCHMARK(search)->Unit(benchmark::kMillisecond)->Args({4, 4, 12})->Args({4, 4, 256});
BENCHMARK(memory)->Apply(at_scale);
BENCHMARK(find_critical_path)->Apply(at_scale);
BENCHMARK(symbolic)->Apply(small);

}  // namespace

BENCHMARK_MAIN();
