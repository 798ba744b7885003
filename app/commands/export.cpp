#include <iostream>
#include <nlohmann/json.hpp>

#include "app/commands/commands.hpp"
#include "app/registries.hpp"
#include "base/log.hpp"
#include "base/units.hpp"
#include "engine/export_model.hpp"
#include "graph/model_output.hpp"
#include "graph/trial_load.hpp"
#include "plan/reader.hpp"
#include "plan/rules.hpp"

namespace vpp {

namespace {

void print_json(const ExportReport& report) {
    nlohmann::ordered_json value{{"source", report.source}, {"step", nullptr}, {"tensors", report.num_tensors}};
    if (!report.step.empty()) value["step"] = report.step;
    value["files"] = nlohmann::ordered_json::array();
    for (const ExportedFile& file : report.files) {
        value["files"].push_back({{"file", file.path.string()}, {"bytes", file.size_bytes}});
    }
    std::cout << value.dump() << std::endl;
}

void print_text(const ExportReport& report) {
    std::cout << report.num_tensors << " parameters and buffers of " << report.source
              << (report.step.empty() ? "" : ", after step " + report.step) << '\n';
    for (const ExportedFile& file : report.files) {
        std::cout << "wrote " << file.path.string() << ", " << bytes_text(static_cast<int64_t>(file.size_bytes))
                  << '\n';
    }
    std::cout << std::flush;
}

}  // namespace

int run_export(const CommandLine& line) {
    Plan plan = load_plan(line.plan.config, line.plan.overrides, registered_names());
    const int world = natural_world(plan);
    plan = resolve_plan(std::move(plan), world);
    print_models_plainly();
    trial_load(trial_files(plan), plan.model.trust_sha256);
    const ExportReport report = export_model(plan, line.export_request, make_logger(line.plan.log_level, -1));
    line.json ? print_json(report) : print_text(report);
    return 0;
}

}  // namespace vpp
