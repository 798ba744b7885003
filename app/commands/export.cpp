#include <CLI/CLI.hpp>

#include <iostream>
#include <nlohmann/json.hpp>

#include "app/commands/commands.hpp"
#include "app/kept_files.hpp"
#include "app/plan_arguments.hpp"
#include "app/unfinished_outputs.hpp"
#include "base/error.hpp"
#include "base/json_text.hpp"
#include "base/log.hpp"
#include "base/units.hpp"
#include "engine/export_model.hpp"
#include "engine/export_request.hpp"
#include "graph/model_output.hpp"
#include "graph/trial_load.hpp"

namespace vpp {

namespace {

struct ExportArguments {
    PlanArguments plan;
    ExportRequest request;
    bool json = false;
};

void add_export_options(CLI::App& command, ExportArguments& arguments) {
    ExportRequest& request = arguments.request;
    add_weights_options(command, request.checkpoint, request.initial_weights);
    command.add_option("--safetensors", request.safetensors, "write parameters and buffers to this file")
        ->type_name("FILE");
    command
        .add_option("--torchscript", request.torchscript,
                    "write the model with these weights to this file, as torch.jit.load reads it; a folder, where the "
                    "plan's stages have files of their own")
        ->type_name("FILE|DIR");
    command
        .add_option("--strip-prefix", request.strip_prefix,
                    "what the names in the safetensors file leave out in front, as the 'm.' of a wrapper's self.m")
        ->type_name("PREFIX");
    command.add_flag("--overwrite", request.overwrite, "replace files that are there already");
    command.add_flag("--json", arguments.json, "what was written as JSON");
}

void print_export_json(const ExportReport& report) {
    nlohmann::ordered_json value{{"source", report.source}, {"step", nullptr}, {"tensors", report.num_tensors}};
    if (!report.step.empty()) value["step"] = report.step;
    value["files"] = nlohmann::ordered_json::array();
    for (const ExportedFile& file : report.files) {
        value["files"].push_back({{"file", file.path.string()}, {"bytes", file.size_bytes}});
    }
    std::cout << json_text(value) << std::endl;
}

void print_export_text(const ExportReport& report) {
    std::cout << report.num_tensors << " parameters and buffers of " << report.source
              << (report.step.empty() ? "" : ", after step " + report.step) << '\n';
    for (const ExportedFile& file : report.files) {
        std::cout << "wrote " << file.path.string() << ", " << bytes_text(static_cast<int64_t>(file.size_bytes))
                  << '\n';
    }
    std::cout << std::flush;
}

int run_export(const ExportArguments& arguments) {
    if (arguments.request.safetensors.empty() && arguments.request.torchscript.empty()) {
        throw Error(ErrorKind::CommandLine,
                    "vpp export writes --safetensors FILE, --torchscript FILE, or both; see vpp export --help");
    }
    if (!arguments.request.strip_prefix.empty() && arguments.request.safetensors.empty()) {
        throw Error(ErrorKind::CommandLine, "--strip-prefix is for --safetensors; TorchScript keeps the model's names");
    }
    const Plan plan = resolved_plan(arguments.plan);
    check_outputs({{"--safetensors", arguments.request.safetensors}, {"--torchscript", arguments.request.torchscript}},
                  files_of_plan(plan));
    print_models_plainly();
    trial_load(trial_files(plan), plan.model.trust_sha256);
    const UnfinishedOutputs unfinished({arguments.request.safetensors, arguments.request.torchscript});
    const ExportReport report = export_model(plan, arguments.request, make_logger(arguments.plan.log_level, -1));
    arguments.json ? print_export_json(report) : print_export_text(report);
    return 0;
}

}  // namespace

void add_export(CLI::App& app, Chosen& chosen) {
    const auto arguments = std::make_shared<ExportArguments>();
    CLI::App& command = add_command(app, "export", "write the weights of a checkpoint for other programs",
                                    "vpp export plan.toml --safetensors weights.safetensors");
    add_plan_options(command, arguments->plan);
    add_export_options(command, *arguments);
    command.callback([arguments, &chosen] { chosen = [arguments] { return run_export(*arguments); }; });
}

}  // namespace vpp
