#include <iostream>
#include <nlohmann/json.hpp>

#include "app/commands/commands.hpp"
#include "app/job.hpp"
#include "base/error.hpp"
#include "comm/collective.hpp"
#include "engine/agreement.hpp"
#include "engine/verify.hpp"

namespace vpp {

namespace {

// Of one step on one device, which all other ranks wait for.
constexpr double kStepSeconds = 600;

void print_text(const Job& job, const Program& program, const VerifyResult& result) {
    const std::string what = std::to_string(program.mesh.num_ranks()) + " rank(s), " +
                             std::to_string(program.training.split.num_stages()) + " stage(s), " +
                             program.training.schedule.name + ", " + job.plan.pipeline.split_method;
    if (result.is_equal) {
        std::cout << "bitwise equal: " << what << ": " << result.num_compared << " values over " << result.steps
                  << " steps are those of " << (program.mesh.num_ranks() == 1 ? "a second run" : "one device") << " ("
                  << numeric_environment(job.plan).text() << ")" << std::endl;
    } else {
        std::cout << "NOT equal: " << what << ": step " << result.different_step << ": " << result.difference << " ("
                  << result.num_different << " values of this step differ)" << std::endl;
    }
}

void print_json(const Program& program, const VerifyResult& result) {
    const nlohmann::json value{{"equal", result.is_equal},
                               {"steps", result.steps},
                               {"values", result.num_compared},
                               {"ranks", program.mesh.num_ranks()},
                               {"stages", program.training.split.num_stages()},
                               {"schedule", program.training.schedule.name},
                               {"different_step", result.different_step},
                               {"difference", result.difference}};
    std::cout << value.dump() << std::endl;
}

/// Rank 0 runs the reference; the others follow step by step, so that none waits longer than one step takes.
RunRecord run_reference(const Job& job, const Program& program, const Datasets& data, int64_t steps) {
    job.transport.set_position("running the reference");
    const auto step_done = [&](Engine&, int64_t) { barrier(job.transport); };
    if (job.is_first()) return record_reference(job.plan, program, data, steps, step_done);
    for (int64_t step = 0; step < steps; ++step) barrier(job.transport);
    return {};
}

int verify_on(const Job& job, int64_t steps, bool json) {
    Datasets data = open_datasets(job.plan);
    Prepared prepared = agree_on_program(job.transport, job.plan, data);
    guard_ranges(data, job.plan, prepared.program.training.graph);
    job.transport.set_deadline(kStepSeconds);
    const RunRecord reference = run_reference(job, prepared.program, data, steps);
    RunRecord pipeline;
    {
        Engine engine(job.plan, prepared.program, prepared.sources, data, job.transport);
        pipeline = record_run(engine, steps);
    }
    barrier(job.transport);
    if (!job.is_first()) return 0;
    const VerifyResult result = compare_runs(reference, pipeline);
    if (json)
        print_json(prepared.program, result);
    else
        print_text(job, prepared.program, result);
    if (!result.is_equal) throw Error(ErrorKind::VerifyDifference, "the pipeline does not have the bits of one device");
    return 0;
}

}  // namespace

int run_verify(const CommandLine& line) {
    return run_job(line, [&](const Job& job) { return verify_on(job, line.steps, line.json); });
}

}  // namespace vpp
