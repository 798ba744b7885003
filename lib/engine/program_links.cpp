#include "engine/program_links.hpp"

#include <algorithm>

#include "comm/link_room.hpp"
#include "comm/nccl.hpp"
#include "engine/replica_pieces.hpp"

namespace vpp {

namespace {

void add_links(std::vector<Link>& links, const Schedule& lowered, const std::vector<int>& pipeline) {
    for (size_t pp = 0; pp < lowered.actions.size(); ++pp) {
        for (const Action& action : lowered.actions[pp]) {
            if (!is_transfer(action.kind) || !is_send(action.kind)) continue;
            links.push_back({{pipeline[pp], pipeline[static_cast<size_t>(action.peer)]}});
        }
    }
}

bool writes_buffers(const Graph& graph) {
    return std::any_of(graph.parameters.begin(), graph.parameters.end(),
                       [](const GraphParameter& parameter) { return parameter.written; });
}

}  // namespace

std::vector<Link> links_of(const Program& program, bool zero1) {
    std::vector<Link> links;
    for (int rank = 0; rank < program.mesh.num_ranks(); ++rank) {
        const std::vector<int> pipeline = program.mesh.pipeline_of(rank);
        if (pipeline.front() != rank) continue;  // once for each pipeline
        add_links(links, program.training.schedule, pipeline);
        if (program.evaluation) add_links(links, program.evaluation->schedule, pipeline);
    }
    for (int rank = 0; rank < program.mesh.num_ranks(); ++rank) {
        const std::vector<int> replicas = program.mesh.replicas_of(rank);
        if (replicas.front() != rank) continue;
        const auto add = [&](ReplicaContent content) {
            links.push_back(link_of(replicas, replica_channel(0, content)));
        };
        if (replicas.size() < 2) continue;
        add(ReplicaContent::Gradients);
        add(ReplicaContent::Sums);
        if (zero1) add(ReplicaContent::Parameters);
        if (writes_buffers(program.training.graph)) add(ReplicaContent::Buffers);
    }
    return links;
}

ProgramTransport::ProgramTransport(Transport& job, const Plan& plan, const Program& program, at::Device device)
    : job_(job) {
    const std::vector<Link> links = links_of(program, plan.mesh.zero1);
    if (plan.mesh.transport != "nccl" || links.empty()) return;
    check_links_fit(links);
    maker_ = make_nccl_links(device.index(), most_links_of_a_rank(links));
    links_ = std::make_unique<LinkTransport>(job, links, *maker_);
}

}  // namespace vpp
