#include "engine/program_links.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "comm/link_room.hpp"
#include "comm/nccl.hpp"
#include "plan/transports.hpp"
#include "stage/torch_device_memory.hpp"

namespace vpp {

namespace {

/// From a PP rank to another: bytes of a step and of an evaluation's.
using Traffic = std::map<std::pair<size_t, size_t>, int64_t>;

void add_traffic(Traffic& traffic, const Phase& phase) {
    for (size_t pp = 0; pp < phase.schedule.actions.size(); ++pp) {
        for (const Action& action : phase.schedule.actions[pp]) {
            if (!is_transfer(action.kind) || !is_send(action.kind)) continue;
            const Edge& edge = phase.split.edges.at(static_cast<size_t>(action.edge));
            traffic[{pp, static_cast<size_t>(action.peer)}] += edge.message_bytes;
        }
    }
}

/// Any of its steps may take memory of a card, and so wait for messages that hold it up.
bool shapes_follow_data(const Program& program) {
    return program.training.graph.shapes_follow_data ||
           (program.evaluation && program.evaluation->graph.shapes_follow_data);
}

}  // namespace

std::vector<Link> links_of(const Program& program) {
    std::vector<Link> links;
    std::vector<std::vector<int>> pipelines;
    for (int rank = 0; rank < program.mesh.num_ranks(); ++rank) {
        const std::vector<int> replicas = program.mesh.replicas_of(rank), pipeline = program.mesh.pipeline_of(rank);
        if (pipeline.front() == rank) pipelines.push_back(pipeline);
        if (replicas.size() < 2 || replicas.front() != rank) continue;
        for (int number = 0; number < kLinksOfReplicas; ++number) links.push_back({replicas, true, number});
    }
    if (shapes_follow_data(program)) return links;
    Traffic traffic;
    add_traffic(traffic, program.training);
    if (program.evaluation) add_traffic(traffic, *program.evaluation);
    std::vector<std::pair<std::pair<size_t, size_t>, int64_t>> sorted(traffic.begin(), traffic.end());
    std::ranges::stable_sort(sorted, std::ranges::greater(), [](const auto& entry) { return entry.second; });
    for (const auto& [ends, bytes] : sorted) {
        for (const std::vector<int>& pipeline : pipelines) {
            links.push_back({{pipeline.at(ends.first), pipeline.at(ends.second)}});
        }
    }
    return links;
}

std::string no_links_text(const Program& program) {
    if (program.mesh.pp == 1 || !shapes_follow_data(program)) return no_room_text(links_of(program));
    return "the shapes of this model may follow the data, so any step may take memory of a card and wait for all that "
           "it does: values go from stage to stage through the host, which is slower";
}

ProgramTransport::ProgramTransport(Transport& job, const Plan& plan, const Program& program, at::Device device)
    : job_(job) {
    if (transport_named(plan.mesh.transport).links != UsesLinks::Yes) return;
    const std::vector<Link> links = links_with_room(links_of(program));
    if (links.empty()) {
        if (!job.carries_device_memory() && !device.is_cpu()) job.carry(make_staged_memory(device));
        return;
    }
    maker_ = make_nccl_links(device.index(), most_links_of_a_rank(links));
    links_ = std::make_unique<LinkTransport>(job, links, *maker_);
}

}  // namespace vpp
