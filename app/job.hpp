#pragma once
// A command on a plan across ranks: from the launch to a transport, and from an error to one line and one exit code.
#include <c10/core/Device.h>

#include <functional>

#include "app/end_record.hpp"
#include "app/plan_arguments.hpp"
#include "base/log.hpp"
#include "comm/transport.hpp"
#include "plan/plan.hpp"
#include "program/prepare.hpp"

namespace vpp {

/// Where a rank of this host computes, made ready for all that the whole process decides. Throws Error{Plan,
/// MissingInput}.
at::Device choose_device(const Plan& plan, int local_rank);

/// What a command's body gets on every rank.
struct Job {
    const Plan& plan;
    Transport& transport;
    Logger log;
    EndRecord& end;
    bool ranks_exceed_cores = false;
    bool is_started_by_srun = false;
    at::Device device = at::kCPU;  ///< where this rank computes

    bool is_first() const { return transport.rank() == 0; }
    /// For what one rank says for all; null on the others.
    Logger first_log() const { return is_first() ? log : Logger(); }
};

/// Reads and resolves the plan for the number of ranks that mpirun started, starts MPI and runs the body; returns the
/// exit code. Plan errors are printed once, by rank 0, before MPI starts. An error of any rank ends the job.
/// `adapt`: what the command changes in the plan before it is resolved. `world_of`: the number of ranks that the plan
/// is resolved for, of the changed plan and the number that was started; left out: that number.
int run_job(const PlanArguments& arguments, const std::function<int(const Job&)>& body,
            const std::function<void(Plan&)>& adapt = {}, const std::function<int(const Plan&, int)>& world_of = {});

/// Rank 0 says what is to be known before `graph`, one of the program's, runs.
void say_warnings(const Job& job, const Program& program, const Graph& graph);

/// Holds the values of the data to what the model can take, now that its graph is known.
void guard_ranges(Datasets& data, const Graph& graph);

}  // namespace vpp
