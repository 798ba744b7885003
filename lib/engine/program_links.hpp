#pragma once
// What carries the values of a program: messages of the job, or links between the cards of its ranks.
#include <c10/core/Device.h>

#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "comm/link_transport.hpp"
#include "plan/plan.hpp"
#include "program/program.hpp"

namespace vpp {

/// The links that the phases of a program use, the most important first: those of the replicas of each stage, however
/// many they are, and in all pipelines one from each rank to every other that it sends to, most bytes first, unless
/// shapes follow the data. Replicas exchange gradients of shares, their sums, with mesh.zero1 updated parameters, and
/// buffers, which all have from replica 0. Optimizer state goes beside the links, as bytes: it moves at saves alone.
///
/// No operation of a card waits in a circle: a rank lets its card wait for an operation only when the bytes of all of
/// its messages are there, and each other rank of a link sends some just before it gives the operation to its own card,
/// be there a part with them or not; so whatever a card waits for was given before. And all ends give those of one link
/// in one order: that of the schedule (schedule/message_order.hpp), or of the buckets of gradients, and of sums
/// (engine/gradient_reduction.hpp), with what comes behind all of them.
std::vector<Link> links_of(const Program& program);

/// For people: what has no link, and why. Empty where all has.
std::string no_links_text(const Program& program);

/// Where mesh.transport uses links, a transport over the program's links; else the job's own. That carries memory of
/// cards too where a program has no link: copies there and back go beside what the cards compute.
class ProgramTransport {
  public:
    /// Requires: the program was prepared for that plan; `device` is this rank's.
    /// Owns: borrows the job's transport, which must outlive it.
    /// Calls: collective. Throws: Error{RankLost} when ranks do not connect.
    ProgramTransport(Transport& job, const Plan& plan, const Program& program, at::Device device);

    Transport& get() { return links_ ? static_cast<Transport&>(*links_) : job_; }

    /// Calls what computes and sends. What that throws is told, with its code, whatever the links still wait for.
    template <typename Use>
    auto use(const Use& compute) {
        try {
            return compute();
        } catch (const std::exception& error) {
            if (links_) links_->give_up(error);
            throw;
        }
    }

  private:
    Transport& job_;
    std::unique_ptr<LinkMaker> maker_;
    std::unique_ptr<LinkTransport> links_;
};

}  // namespace vpp
