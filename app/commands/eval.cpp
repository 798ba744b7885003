#include <iostream>
#include <nlohmann/json.hpp>

#include "app/commands/commands.hpp"
#include "app/job.hpp"
#include "base/units.hpp"
#include "engine/agreement.hpp"
#include "engine/evaluate_checkpoint.hpp"

namespace vpp {

namespace {

void print_json(const EvaluationReport& report, const EvaluationWish& wish) {
    nlohmann::json value{{"loss", report.result.loss},
                         {"samples", report.result.samples},
                         {"dropped", wish.dropped},
                         {"step", report.step},
                         {"checkpoint", report.checkpoint.string()},
                         {"seconds", report.result.seconds},
                         {"outputs", nlohmann::json::array()}};
    for (const auto& file : report.files) value["outputs"].push_back(file.string());
    std::cout << value.dump() << std::endl;
}

void print_text(const EvaluationReport& report, const EvaluationWish& wish) {
    char loss[64];
    std::snprintf(loss, sizeof loss, "%.9g", report.result.loss);
    std::cout << "loss " << loss << " over " << report.result.samples << " samples";
    if (wish.dropped > 0) std::cout << " (the last " << wish.dropped << " left out)";
    if (report.checkpoint.empty()) {
        std::cout << ", the model file's own weights";
    } else {
        std::cout << ", after step " << report.step << " (" << report.checkpoint.string() << ")";
    }
    std::cout << ", " << fixed_text(report.result.seconds, 2) << " s" << std::endl;
    for (const auto& file : report.files) std::cout << "wrote " << file.string() << std::endl;
}

int eval_on(const Job& job, const EvaluationRequest& request, bool json) {
    Datasets data = open_validation(job.plan);
    const EvaluationWish wish = evaluation_wish(job.plan, data, request);
    Prepared prepared =
        agree_on_program(job.transport, job.plan, data, [&] { return prepare_evaluation(job.plan, data, wish); });
    guard_ranges(data, job.plan, prepared.program.evaluation->graph);
    if (job.is_first()) {
        for (const std::string& warning : prepared.program.evaluation->graph.warnings) job.log->warn(warning);
    }
    const EvaluationReport report =
        evaluate_checkpoint(job.plan, prepared, data, wish, request, job.transport, job.log);
    if (job.is_first()) json ? print_json(report, wish) : print_text(report, wish);
    return 0;
}

}  // namespace

int run_eval(const CommandLine& line) {
    return run_job(line, [&](const Job& job) { return eval_on(job, line.evaluation, line.json); });
}

}  // namespace vpp
