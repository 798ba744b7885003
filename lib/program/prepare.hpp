#pragma once
// Plan -> Program: reads data headers and the model, splits, schedules, proves. Deterministic, no MPI, no device; rank
// 0 does it for the job, `inspect` for a person.
#include <functional>
#include <memory>
#include <string>

#include "data/dataset.hpp"
#include "graph/source.hpp"
#include "plan/plan.hpp"
#include "program/program.hpp"

namespace vpp {

/// The data of a plan; validation is null when the plan names none.
struct Datasets {
    std::unique_ptr<Dataset> training;
    std::unique_ptr<Dataset> validation;
    std::string digest() const;
};

/// Throws Error{MissingInput, BadData, Plan}.
Datasets open_datasets(const Plan& plan);

/// What runs the graphs of a Program: the same file read again where the Program came from another rank.
struct Sources {
    std::unique_ptr<Source> training;
    std::unique_ptr<Source> evaluation;  ///< null without validation data
};

struct Prepared {
    Program program;
    Sources sources;
};

/// Requires: the plan is resolved for its world (plan/rules.hpp).
/// Throws Error{Plan, BadData, MissingInput}: everything that can be wrong with data, model, split or schedule.
Prepared prepare(const Plan& plan, const Datasets& data);

/// The same program with another schedule of one stage on one rank: the reference of the numerical contract.
Program reference_program(const Program& program);

/// Reads the model again for a program that came as bytes.
/// Throws Error{RanksDisagree} when this rank's file is another model.
Sources open_sources(const Plan& plan, const Program& program);

}  // namespace vpp
