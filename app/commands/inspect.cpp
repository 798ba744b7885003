#include <CLI/CLI.hpp>

#include <iostream>
#include <utility>

#include "app/commands/commands.hpp"
#include "app/commands/inspect_search.hpp"
#include "app/environment.hpp"
#include "app/kept_files.hpp"
#include "app/plan_arguments.hpp"
#include "app/planned_program.hpp"
#include "app/terminal.hpp"
#include "base/file.hpp"
#include "device/cards.hpp"
#include "engine/executor.hpp"
#include "engine/program_links.hpp"
#include "launch/host_facts.hpp"
#include "plan/rules.hpp"
#include "program/inspect.hpp"
#include "program/program_json.hpp"
#include "report/inspection_dot.hpp"
#include "report/inspection_json.hpp"
#include "report/inspection_svg.hpp"
#include "report/inspection_text.hpp"

namespace vpp {

namespace {

struct InspectArguments {
    PlanArguments plan;
    int world = 0;  ///< 0 = what the plan names
    int depth = 2;
    bool json = false;
    std::string svg, dot;  ///< files
};

Machine this_machine(std::vector<Card> cards) {
    const HostFacts host = look_at_host(environment_of(host_variables()));
    return {.cores = host.cpus,
            .memory_bytes = host.memory_bytes,
            .cards = std::move(cards),
            .mpi_moves_card_memory = mpi_moves_card_memory()};
}

void write_said(const std::string& file, const std::string& text) {
    write_file_durably(file, text);
    std::cerr << "vpp: wrote " << file << std::endl;
}

int run_inspect(const InspectArguments& arguments) {
    const Plan plan = resolved_plan(arguments.plan, arguments.world);
    check_outputs({{"--svg", arguments.svg}, {"--dot", arguments.dot}}, files_of_plan(plan));
    std::vector<Card> cards = cards_for(plan);
    const Program program = make_program(plan, cards);
    const Machine machine = this_machine(std::move(cards));
    const MessageBuffers buffers = message_buffers(!machine.cards.empty());
    Inspection inspection =
        inspect_program(plan, program, {.machine = machine, .depth = arguments.depth, .buffers = buffers});
    if (inspection.send_by_nccl()) inspection.no_room = no_links_text(program);
    inspection.settings = arguments.plan.overrides;
    inspection.search = search_lines(arguments.plan, program);
    if (!arguments.svg.empty()) write_said(arguments.svg, inspection_svg(inspection));
    if (!arguments.dot.empty()) write_said(arguments.dot, inspection_dot(inspection));
    if (arguments.json) {
        std::cout << to_json_text_with(program, "inspection", inspection_json(inspection)) << std::endl;
        return 0;
    }
    const Terminal terminal = output_terminal();
    std::cout << inspection_text(inspection, {terminal.width, terminal.colour}) << std::flush;
    return 0;
}

}  // namespace

void add_inspect(CLI::App& app, Chosen& chosen) {
    const auto arguments = std::make_shared<InspectArguments>();
    CLI::App& command = add_command(app, "inspect", "show what would happen: stages, edges, memory, schedule, advice",
                                    "vpp inspect plan.toml --world 64 --svg model.svg");
    add_plan_options(command, arguments->plan);
    command.add_option("--world", arguments->world, "number of ranks to show it for; default: what the plan names")
        ->check(CLI::Range(1, kMostRanks));
    command.add_option("--depth", arguments->depth, "how deep submodules inside one stage are listed")
        ->check(CLI::Range(0, 1000))
        ->capture_default_str();
    command.add_flag("--json", arguments->json, "the whole program and this page as JSON");
    command.add_option("--svg", arguments->svg, "write a picture of the cut model and of a step")->type_name("FILE");
    command.add_option("--dot", arguments->dot, "write the cut model for Graphviz")->type_name("FILE");
    command.callback([arguments, &chosen] { chosen = [arguments] { return run_inspect(*arguments); }; });
}

}  // namespace vpp
