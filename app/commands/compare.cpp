#include <CLI/CLI.hpp>

#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/commands/commands.hpp"
#include "app/commands/comparison_output.hpp"
#include "app/kept_files.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "compare/comparison_json.hpp"
#include "compare/plot_svg.hpp"
#include "compare/run_curves.hpp"

namespace vpp {

namespace {

struct CompareArguments {
    std::vector<std::string> runs;
    std::string metric = kComparedCurve;
    std::string svg;
    bool json = false;
};

int run_compare(const CompareArguments& arguments) {
    std::vector<RecordedRun> runs;
    for (const std::string& folder : arguments.runs) runs.push_back(read_run(folder));
    for (const std::string& folder : arguments.runs) check_outputs({{"--svg", arguments.svg}}, files_of_run(folder));
    const Comparison comparison = compare_runs(std::move(runs));
    for (const ComparedRun& run : comparison.runs) say_notes(run.record);
    if (!arguments.svg.empty()) {
        write_file_durably(arguments.svg, plot_svg(plot_runs(comparison, arguments.metric)));
        std::cerr << "vpp: wrote " << printable(arguments.svg) << std::endl;
    }
    if (arguments.json) {
        std::cout << comparison_json(comparison) << std::endl;
    } else {
        print_comparison(comparison, arguments.metric);
    }
    return 0;
}

}  // namespace

void add_compare(CLI::App& app, Chosen& chosen) {
    const auto arguments = std::make_shared<CompareArguments>();
    CLI::App& command = add_command(app, "compare", "runs side by side: settings that differ, results, loss curves",
                                    "vpp compare runs/gpt runs/gpt2 --svg loss.svg");
    command.add_option("RUN", arguments->runs, "run folders")->required();
    command.add_option("--metric", arguments->metric, "the curve, by its name in metrics.csv")
        ->check(CLI::IsMember(curve_names()))
        ->type_name("NAME")
        ->capture_default_str();
    command.add_option("--svg", arguments->svg, "write the curves as a picture too")->type_name("FILE");
    command.add_flag("--json", arguments->json, "settings and results as JSON, no curves");
    command.callback([arguments, &chosen] { chosen = [arguments] { return run_compare(*arguments); }; });
}

}  // namespace vpp
