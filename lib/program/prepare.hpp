#pragma once
// Plan -> Program: reads data headers and the model, splits, schedules, proves. Deterministic, no MPI, no device; rank
// 0 does it for the job, `inspect` for a person.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "data/dataset.hpp"
#include "graph/source.hpp"
#include "plan/plan.hpp"
#include "program/program.hpp"

namespace vpp {

/// The data of a plan; validation is null when the plan names none.
struct Datasets {
    /// Shared with a thread that may still read when the training has ended. Null where only evaluation is wanted.
    std::shared_ptr<Dataset> training;
    std::shared_ptr<Dataset> validation;
    std::string digest() const;
};

/// Where there is a log, it says what takes long.  Throws Error{MissingInput, BadData, Plan}.
Datasets open_datasets(const Plan& plan, const Logger& log = {});

/// What runs the graphs of a Program: the same file read again where the Program came from another rank.
struct Sources {
    std::unique_ptr<Source> training;    ///< null when the program has no training phase
    std::unique_ptr<Source> evaluation;  ///< null without validation data

    /// Where what they run computes (graph/source.hpp).
    void place_on(at::Device device);
    at::Device device() const { return (training ? training : evaluation)->device(); }
};

struct Prepared {
    Program program;
    Sources sources;
};

/// For ranks that compute on devices like this one, where the sources are placed: in mixed precision it decides dtypes,
/// and nothing else does.
/// Requires: the plan is resolved for its world (plan/rules.hpp).
/// Throws Error{Plan, BadData, MissingInput}: everything that can be wrong with data, model, split or schedule.
Prepared prepare(const Plan& plan, const Datasets& data, at::Device device = at::kCPU);

/// What an evaluation without training wants.
struct EvaluationWish {
    bool outputs = false;     ///< forward's outputs, not the loss alone
    int64_t num_samples = 0;  ///< samples that are looked at; the last microbatch may be partial
    int64_t dropped = 0;      ///< samples at the end that are left out on purpose
};

/// A Program with an evaluation phase and no training phase: the split method cuts the evaluation graph itself.
/// Requires: the plan is resolved for its world; the data have a validation part.
/// Throws what prepare throws; Error{BadData} also when the model cannot take the partial microbatch at the end, or
/// has no outputs to give.
Prepared prepare_evaluation(const Plan& plan, const Datasets& data, const EvaluationWish& wish,
                            at::Device device = at::kCPU);

/// The digest of the plan's model as training knows it: what a checkpoint has as the fact "model".
Digest training_digest(const Plan& plan, const Fields& fields);

/// The same program with another schedule of one stage on one rank: the reference of the numerical contract.
Program reference_program(const Program& program);

/// The same model in another layout: split, schedule and pp of `plan`, or these cuts instead of its split method. The
/// evaluation phase is left out.
/// Requires: the plan is resolved, and differs from the program's own in mesh.pp, [pipeline] and global_batch_size
/// only; the microbatch size is the program's.
/// Throws Error{Plan} when split or schedule cannot be made.
Program with_layout(const Program& program, const Plan& plan, const std::optional<std::vector<int>>& cuts);

/// Reads the model again for a program that came as bytes; the sources are placed on `device`.
/// Throws Error{RanksDisagree} when this rank's file is another model.
Sources open_sources(const Plan& plan, const Program& program, at::Device device);

}  // namespace vpp
