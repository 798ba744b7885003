#pragma once
// What carries the values of a program: messages of the job, or links between the cards of its ranks.
#include <c10/core/Device.h>

#include <memory>
#include <vector>

#include "comm/link_transport.hpp"
#include "plan/plan.hpp"
#include "program/program.hpp"

namespace vpp {

/// The links that the phases of a program use, in all of its pipelines.
std::vector<Link> links_of(const Program& program);

/// Where mesh.transport is "nccl", a transport over the program's links; else the job's own.
class ProgramTransport {
  public:
    /// Requires: the program was prepared for that plan; `device` is this rank's.
    /// Owns: borrows the job's transport, which must outlive it.
    /// Calls: collective. Throws: Error{RankLost} when ranks do not connect.
    ProgramTransport(Transport& job, const Plan& plan, const Program& program, at::Device device);

    Transport& get() { return links_ ? static_cast<Transport&>(*links_) : job_; }

  private:
    Transport& job_;
    std::unique_ptr<LinkMaker> maker_;
    std::unique_ptr<LinkTransport> links_;
};

}  // namespace vpp
