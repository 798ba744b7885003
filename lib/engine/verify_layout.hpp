#pragma once
// One layout against one device: a pipeline on the first ranks of a job, compared with the one-stage run, and the first
// difference looked at closely. Many layouts of one model share their references (engine/verify_matrix.hpp).
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "comm/transport.hpp"
#include "engine/verify.hpp"
#include "program/prepare.hpp"

namespace vpp {

/// A plan and its program, on as many ranks as its mesh has.
struct Layout {
    Plan plan;
    Program program;
};

/// What breaks a pipeline on purpose. For tests only: nothing in a plan or on the command line sets it. Each is left
/// alone when it is empty; the reference is never broken.
struct Faults {
    std::function<void(Program&)> program;
    std::function<std::unique_ptr<Transport>(Transport&)> transport;  ///< put around the pipeline's
    AfterStep after_step;
};

class LayoutVerifier {
  public:
    /// Owns: borrows all; `sources` are those of every layout's graph. `transport` is the whole job's.
    LayoutVerifier(Sources& sources, const Datasets& data, Transport& transport, int64_t steps, Faults faults = {});

    /// Runs the layout, and the reference when no earlier layout had one with these replicas and
    /// microbatches. The result is rank
    /// 0's; the others know step and name of a difference only. The
    /// first difference of all calls is looked at: both runs are made again up to
    /// that step, and `difference` names stage, rank, microbatch, element and size.
    /// Calls:  collective over all ranks of the job, also those that the layout does not use.
    /// Throws: what a step throws.
    VerifyResult compare(const Layout& layout);

    int num_references() const { return static_cast<int>(references_.size()); }

  private:
    const RunRecord& reference(const Layout& layout);
    RunRecord run_reference(const Layout& layout, int64_t steps, StepWatch* watch, int num_microbatches);
    RunRecord run_pipeline(const Layout& layout, int64_t steps, StepWatch* watch, int num_microbatches);
    RunRecord run_steps(Engine& engine, Program& program, int64_t steps, const AfterStep& after_step, StepWatch* watch,
                        int num_microbatches);
    RunRecord wait_for(const std::string& what, int64_t steps);
    std::string look_closer(const Layout& layout, const VerifyResult& result);
    int find_microbatch(const Layout& layout, int64_t step, const std::string& name);
    StepWatch fetch_reference(const Layout& layout, int64_t step, const std::string& name);
    StepWatch fetch_pipeline(const Layout& layout, int64_t step, const std::string& name,
                             const std::optional<at::Tensor>& expected);

    Sources& sources_;
    const Datasets& data_;
    Transport& job_;
    int64_t steps_;
    Faults faults_;
    std::map<std::pair<int, int>, RunRecord> references_;  ///< by replicas and their microbatches; rank 0's
    bool has_looked_ = false;
};

/// The actions of the first microbatches only; loss scale and keys stay those of the whole step. What is left can run
/// in its order, since actions of different microbatches need nothing of each other.
void keep_microbatches(Schedule& schedule, int num_microbatches);

/// Whether a record has everything that the program says there is: each loss, parameter and buffer, a gradient, and
/// behind the last step an evaluation.
/// Throws Error{Bug} naming what is missing: a comparison of nothing would find nothing.
void check_complete(const RunRecord& record, const Program& program);

}  // namespace vpp
