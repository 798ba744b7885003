#include <CLI/CLI.hpp>

#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "app/commands/commands.hpp"
#include "app/commands/comparison_output.hpp"
#include "app/kept_files.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "report/report_page.hpp"

namespace vpp {

namespace {

struct ReportArguments {
    std::vector<std::string> runs;
    std::string out;
};

int run_report(const ReportArguments& arguments) {
    std::vector<RecordedRun> runs;
    for (const std::string& folder : arguments.runs) runs.push_back(read_run(folder));
    std::filesystem::path out = arguments.out;
    if (out.empty()) out = runs.size() == 1 ? std::filesystem::path(arguments.runs[0]) / "report.html" : "report.html";
    for (const std::string& folder : arguments.runs) check_outputs({{"-o", out.string()}}, files_of_run(folder));
    write_file_durably(out, report_page(runs));
    for (const RecordedRun& run : runs) say_notes(run);
    std::cout << printable(out.string()) << std::endl;
    return 0;
}

}  // namespace

void add_report(CLI::App& app, Chosen& chosen) {
    const auto arguments = std::make_shared<ReportArguments>();
    CLI::App& command = add_command(app, "report", "runs as a page: loss, rate, waiting, memory, a step, settings",
                                    "vpp report runs/gpt runs/gpt2 -o both.html");
    command.add_option("RUN", arguments->runs, "run folders; several are laid over each other")->required();
    command
        .add_option("-o,--output", arguments->out,
                    "the page; default: report.html in the run's folder, of several here")
        ->type_name("FILE");
    command.callback([arguments, &chosen] { chosen = [arguments] { return run_report(*arguments); }; });
}

}  // namespace vpp
