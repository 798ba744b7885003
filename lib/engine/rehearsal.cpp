#include "engine/rehearsal.hpp"

#include <map>

#include "base/bytes.hpp"
#include "base/process.hpp"
#include "comm/collective.hpp"
#include "engine/stage_memory.hpp"
#include "graph/torch_dtype.hpp"
#include "report/pipeline_times.hpp"
#include "schedule/simulator.hpp"

namespace vpp {

namespace {

/// Edges between stages by what really left this rank's.
using EdgeTensors = std::map<int, RehearsalReport::Edge>;

/// Notes the tensors of edges while it lives.
class EdgeWatch {
  public:
    explicit EdgeWatch(Executor& executor) : executor_(executor) {
        executor.set_watch({[this](const Edge& edge, int, Direction direction, const at::Tensor& tensor) {
                                const bool crosses = edge.producer != edge.consumer;
                                if (crosses && direction == Direction::Forward) note(edge, tensor);
                            },
                            {}});
    }
    ~EdgeWatch() { executor_.set_watch({}); }
    EdgeWatch(const EdgeWatch&) = delete;
    EdgeWatch& operator=(const EdgeWatch&) = delete;

    const EdgeTensors& edges() const { return edges_; }

  private:
    void note(const Edge& edge, const at::Tensor& tensor) {
        edges_[edge.id] = {edge.producer,
                           edge.consumer,
                           edge.name,
                           dtype_name(tensor.scalar_type()),
                           tensor.sizes().vec(),
                           static_cast<int64_t>(tensor.nbytes())};
    }

    Executor& executor_;
    EdgeTensors edges_;
};

Bytes own_figures(const Engine& engine, const EdgeTensors& edges) {
    ByteWriter writer;
    writer.put(engine.full_state_bytes());
    writer.put(peak_resident_bytes());
    writer.put(static_cast<uint64_t>(edges.size()));
    for (const auto& [id, edge] : edges) {
        writer.put(id);
        writer.put(edge.from);
        writer.put(edge.to);
        writer.put_text(edge.name);
        writer.put_text(edge.dtype);
        writer.put(static_cast<uint64_t>(edge.shape.size()));
        for (int64_t size : edge.shape) writer.put(size);
        writer.put(edge.bytes);
    }
    return writer.take();
}

/// Edges of replicas are the same.
void read_figures(const Bytes& bytes, RehearsalReport::Rank& rank, EdgeTensors& edges) {
    ByteReader reader(bytes);
    rank.full_state_bytes = reader.get<int64_t>();
    rank.process_bytes = reader.get<int64_t>();
    for (auto count = reader.get<uint64_t>(); count > 0; --count) {
        RehearsalReport::Edge& edge = edges[reader.get<int>()];
        edge.from = reader.get<int>();
        edge.to = reader.get<int>();
        edge.name = reader.get_text();
        edge.dtype = reader.get_text();
        edge.shape.resize(reader.get<uint64_t>());
        for (int64_t& size : edge.shape) size = reader.get<int64_t>();
        edge.bytes = reader.get<int64_t>();
    }
}

double busy_time(const std::vector<StageTimes>& stages) {
    double sum = 0;
    for (const StageTimes& stage : stages) sum += stage.busy();
    return sum;
}

/// The times of the stages in the quickest pass, which other programs disturbed least; and the loss.
std::vector<StageTimes> run_passes(Engine& engine, double& loss) {
    engine.run_without_update(0);
    std::vector<StageTimes> quickest;
    for (int pass = 0; pass < kRehearsedPasses; ++pass) {
        const StepTotals totals = engine.run_without_update(0);
        if (pass == 0 || busy_time(totals.stages) < busy_time(quickest)) quickest = totals.stages;
        loss = engine.loss_of(totals);
    }
    return quickest;
}

}  // namespace

RehearsalReport rehearse(Engine& engine, const Program& one, const Program& whole) {
    const EdgeWatch watch(engine.executor());
    RehearsalReport report;
    const std::vector<StageTimes> times = run_passes(engine, report.loss);
    Transport& transport = engine.transport();
    const MemoryEvent memory = measure_memory(transport, one, engine.executor(), whole.training.schedule);
    const std::vector<Bytes> figures = gather(transport, own_figures(engine, watch.edges()));
    if (figures.empty()) return report;
    report.microbatch_size = one.microbatch_size;
    report.num_passes = kRehearsedPasses;
    report.schedule = whole.training.schedule.name;
    report.num_microbatches = whole.training.schedule.num_microbatches;
    EdgeTensors edges;
    for (size_t rank = 0; rank < figures.size(); ++rank) {
        const MemoryEvent::Rank& held = memory.ranks.at(rank);
        RehearsalReport::Rank& entry = report.ranks.emplace_back();
        entry.state_bytes = held.state_bytes;
        entry.activation_bytes = held.activation_bytes;
        entry.least_simulated_bytes = held.least_simulated_bytes;
        entry.most_simulated_bytes = held.most_simulated_bytes;
        read_figures(figures[rank], entry, edges);
    }
    for (const auto& [id, edge] : edges) report.edges.push_back(edge);
    StepEvent event;
    PipelineTimes(one.training.schedule, false).fill(event, times, 0);
    report.stages = event.stages;
    const ScheduleCosts costs = costs_of_times(one.training.schedule, times);
    const Simulation step = simulate(whole.training.schedule, costs);
    report.step_ms = costs.units(step.makespan);
    report.bubble = step.bubble_rate();
    return report;
}

}  // namespace vpp
