#include "engine/evaluate_checkpoint.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>

#include "base/error.hpp"
#include "comm/collective.hpp"
#include "data/data_files.hpp"
#include "engine/checkpointing.hpp"
#include "engine/initial_weights.hpp"
#include "engine/output_files.hpp"
#include "engine/program_links.hpp"
#include "plan/batch_size.hpp"

namespace vpp {

namespace {

// Of one group of microbatches, which has not been measured before.
constexpr double kGroupSeconds = 600;

/// The rank whose last stage gathers the outputs.
bool makes_outputs(const Program& program, const Transport& transport) {
    const int rank = program.evaluation->schedule.rank_of_stage.back();
    return program.mesh.pipeline_of(0)[static_cast<size_t>(rank)] == transport.rank();
}

/// Which outputs are written; what is not is said once.
std::vector<int> chosen_outputs(const Program& program, const Transport& transport, const Logger& log) {
    std::vector<std::string> left_out;
    std::vector<int> chosen = outputs_by_sample(program.evaluation->graph, program.microbatch_size, left_out);
    if (chosen.empty()) {
        throw Error(ErrorKind::BadData, "no output of the model has samples along dim 0 (" + left_out.front() +
                                            " for a microbatch of " + std::to_string(program.microbatch_size) + ")");
    }
    for (const std::string& name : left_out) {
        if (transport.rank() == 0) log->warn("not written, since dim 0 is not the samples: " + name);
    }
    return chosen;
}

void check_replaces_no_data(const std::vector<std::filesystem::path>& outputs, const DataPlan& data) {
    std::error_code ignored;
    for (const std::filesystem::path& output : outputs) {
        for (const std::string& file : data_files(data)) {
            if (!std::filesystem::equivalent(output, file, ignored)) continue;
            throw Error(ErrorKind::CommandLine, "--outputs would replace " + printable(output.string()) +
                                                    ", a data file of the plan; name another folder");
        }
    }
}

}  // namespace

Datasets open_validation(const Plan& plan) {
    Datasets data{nullptr, open_dataset(plan, Subset::Validation)};
    if (data.validation) return data;
    throw Error(ErrorKind::Plan,
                "evaluation needs validation data, and the plan names none; add data.val or data.val_split",
                plan.where("data"));
}

EvaluationWish evaluation_wish(const Plan& plan, const Datasets& data, const EvaluationRequest& request) {
    const int64_t all = data.validation->fields().num_samples;
    const int64_t batches = request.batches > 0 ? request.batches : plan.train.eval_batches;
    const int64_t size = samples_of_microbatch(plan);
    EvaluationWish wish;
    wish.outputs = !request.outputs.empty();
    wish.num_samples = samples_of_batches(all, *plan.train.global_batch_size, batches);
    if (request.drop_last) wish.dropped = wish.num_samples % size;
    wish.num_samples -= wish.dropped;
    if (wish.num_samples > 0) return wish;
    throw Error(ErrorKind::BadData, "the validation data have " + std::to_string(all) +
                                        " samples, which fill no microbatch of " + std::to_string(size) +
                                        "; leave --drop-last out");
}

EvaluationReport evaluate_checkpoint(const Plan& plan, Prepared& prepared, const Datasets& data,
                                     const EvaluationWish& wish, const EvaluationRequest& request, Transport& transport,
                                     const Logger& log) {
    const Program& program = prepared.program;
    transport.set_deadline(std::max(kGroupSeconds, plan.run.deadline_floor_s));
    Weights weights;
    weights.load(*prepared.sources.evaluation, program.evaluation->split,
                 program.evaluation->schedule.stages_of(program.mesh.coordinate(transport.rank()).pp));
    EvaluationReport report;
    if (request.initial_weights) {
        load_initial_weights(weights, plan, program.evaluation->graph, transport, log);
    } else {
        const EvaluatedCheckpoint from = load_weights(weights, plan, program, transport, request.checkpoint, log);
        report.checkpoint = from.folder;
        report.step = from.step;
    }
    std::optional<OutputFiles> files;
    if (wish.outputs) {
        const std::vector<int> outputs = chosen_outputs(program, transport, log);
        report.files = output_paths(program.evaluation->graph, outputs, request.outputs);
        check_replaces_no_data(report.files, plan.data);
        if (makes_outputs(program, transport)) {
            files.emplace(program.evaluation->graph, outputs, request.outputs, wish.num_samples, request.overwrite);
        }
    }
    transport.set_position("evaluating");
    ProgramTransport values(transport, plan, program, prepared.sources.device());
    Evaluator evaluator(plan, program, *prepared.sources.evaluation, weights, data.validation, values.get());
    const auto take = [&](const std::vector<at::Tensor>& outputs, int64_t num_samples) {
        if (files) files->take(outputs, num_samples);
    };
    report.result = values.use([&] { return evaluator.run(wish.num_samples, take); });
    if (files) files->publish();
    barrier(transport);
    return report;
}

}  // namespace vpp
