#include <CLI/CLI.hpp>

#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "app/commands/commands.hpp"
#include "app/job.hpp"
#include "base/json_text.hpp"
#include "base/units.hpp"
#include "engine/agreement.hpp"
#include "engine/evaluate_checkpoint.hpp"

namespace vpp {

namespace {

struct EvalArguments {
    PlanArguments plan;
    EvaluationRequest request;
    bool json = false;
};

void add_eval_options(CLI::App& command, EvalArguments& arguments) {
    EvaluationRequest& request = arguments.request;
    add_weights_options(command, request.checkpoint, request.initial_weights);
    command.add_option("--batches", request.batches, "how many batches; default: train.eval_batches, or all")
        ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
    command.add_flag("--drop-last", request.drop_last, "leave out samples at the end that fill no microbatch");
    CLI::Option* outputs =
        command.add_option("--outputs", request.outputs, "write the model's outputs there, a .npy file each")
            ->type_name("DIR");
    command.add_flag("--overwrite", request.overwrite, "replace outputs that are there already")->needs(outputs);
    command.add_flag("--json", arguments.json, "the result as JSON");
}

/// JSON has no NaN: "nan", as in metrics.jsonl.
nlohmann::json json_number(double number) {
    return std::isfinite(number) ? nlohmann::json(number) : nlohmann::json(formatted("%g", number));
}

void print_eval_json(const EvaluationReport& report, const EvaluationWish& wish) {
    nlohmann::json value{{"loss", json_number(report.result.loss)},
                         {"samples", report.result.samples},
                         {"dropped", wish.dropped},
                         {"step", report.step},
                         {"checkpoint", report.checkpoint.string()},
                         {"seconds", report.result.seconds},
                         {"outputs", nlohmann::json::array()}};
    if (report.result.accuracy) value["accuracy"] = *report.result.accuracy;
    if (report.result.perplexity) value["perplexity"] = json_number(*report.result.perplexity);
    for (const auto& file : report.files) value["outputs"].push_back(file.string());
    std::cout << json_text(value) << std::endl;
}

void print_eval_text(const EvaluationReport& report, const EvaluationWish& wish, const std::string& init_from) {
    const auto shown = [](double number) { return formatted("%.9g", number); };
    const EvaluationResult& result = report.result;
    std::cout << "loss " << shown(result.loss);
    if (result.accuracy) std::cout << ", accuracy " << fixed_text(100 * *result.accuracy, 2) << "%";
    if (result.perplexity) std::cout << ", perplexity " << shown(*result.perplexity);
    std::cout << " over " << report.result.samples << " samples";
    if (wish.dropped > 0) std::cout << " (the last " << wish.dropped << " left out)";
    if (report.checkpoint.empty()) {
        std::cout << ", the weights of " << (init_from.empty() ? "the model file" : printable(init_from));
    } else {
        std::cout << ", after step " << report.step << " (" << report.checkpoint.string() << ")";
    }
    std::cout << ", " << fixed_text(report.result.seconds, 2) << " s" << std::endl;
    for (const auto& file : report.files) std::cout << "wrote " << file.string() << std::endl;
}

int eval_on(const Job& job, const EvaluationRequest& request, bool json) {
    Datasets data = open_validation(job.plan);
    const EvaluationWish wish = evaluation_wish(job.plan, data, request);
    const auto make = [&] { return prepare_evaluation(job.plan, data, wish, job.device); };
    Prepared prepared = agree_on_program(job.transport, job.plan, data, make, job.device);
    guard_ranges(data, prepared.program.evaluation->graph);
    say_warnings(job, prepared.program, prepared.program.evaluation->graph);
    const EvaluationReport report =
        evaluate_checkpoint(job.plan, prepared, data, wish, request, job.transport, job.log);
    if (job.is_first()) {
        if (!report.result.remark.empty()) job.log->warn(report.result.remark);
        json ? print_eval_json(report, wish) : print_eval_text(report, wish, job.plan.model.init_from);
    }
    return 0;
}

}  // namespace

void add_eval(CLI::App& app, Chosen& chosen) {
    const auto arguments = std::make_shared<EvalArguments>();
    CLI::App& command = add_command(app, "eval", "the loss of a checkpoint over the validation data; with mpirun",
                                    "mpirun -np 4 vpp eval plan.toml --outputs predictions");
    add_plan_options(command, arguments->plan);
    add_eval_options(command, *arguments);
    command.callback([arguments, &chosen] {
        chosen = [arguments] {
            return run_job(arguments->plan,
                           [&](const Job& job) { return eval_on(job, arguments->request, arguments->json); });
        };
    });
}

}  // namespace vpp
