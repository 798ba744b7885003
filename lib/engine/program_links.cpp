#include "engine/program_links.hpp"

#include "comm/nccl.hpp"

namespace vpp {

namespace {

void add_links(std::vector<Link>& links, const Schedule& lowered, const std::vector<int>& pipeline) {
    for (size_t pp = 0; pp < lowered.actions.size(); ++pp) {
        for (const Action& action : lowered.actions[pp]) {
            if (!is_transfer(action.kind) || !is_send(action.kind)) continue;
            links.push_back({pipeline[pp], pipeline[static_cast<size_t>(action.peer)],
                             carries_gradient(action.kind) ? Direction::Backward : Direction::Forward});
        }
    }
}

}  // namespace

std::vector<Link> links_of(const Program& program) {
    std::vector<Link> links;
    for (int rank = 0; rank < program.mesh.num_ranks(); ++rank) {
        const std::vector<int> pipeline = program.mesh.pipeline_of(rank);
        if (pipeline.front() != rank) continue;  // once for each pipeline
        add_links(links, program.training.schedule, pipeline);
        if (program.evaluation) add_links(links, program.evaluation->schedule, pipeline);
    }
    return links;
}

ProgramTransport::ProgramTransport(Transport& job, const Plan& plan, const Program& program, at::Device device)
    : job_(job) {
    if (plan.mesh.transport != "nccl" || program.mesh.pp == 1) return;
    maker_ = make_nccl_links(device.index());
    links_ = std::make_unique<LinkTransport>(job, links_of(program), *maker_);
}

}  // namespace vpp
