// vpp completion and vpp man: what is made from the commands themselves.
#include "help/completion.hpp"

#include <CLI/CLI.hpp>

#include <iostream>

#include "app/command_pages.hpp"
#include "app/commands/commands.hpp"
#include "app/registries.hpp"
#include "base/exit_codes.hpp"
#include "help/man_page.hpp"

namespace vpp {

namespace {

int print_completion(const std::string& shell, const CommandPage& root) {
    const auto settings = setting_pages(registered_names());
    const auto keys = explained_names();
    if (shell == "bash") std::cout << bash_completion(root, settings, keys);
    if (shell == "zsh") std::cout << zsh_completion(root, settings, keys);
    if (shell == "fish") std::cout << fish_completion(root, settings, keys);
    std::cout.flush();
    return 0;
}

ManualFacts manual_facts() {
    return {
        VPP_VERSION,
        "vpp trains an unmodified TorchScript model across several ranks by pipeline parallelism. What to train, on "
        "what and how to cut it is written in one TOML file, the plan. Every loss, gradient, parameter, buffer and "
        "optimizer state after every step has the bits of one device. vpp explain shows what a plan may say.",
        exit_codes(),
        {{"NO_COLOR", "no colours on the terminal"},
         {"OMP_NUM_THREADS", "1 where several ranks share the cores of a host; the plan's mesh.threads counts else"},
         {"OMPI_ALLOW_RUN_AS_ROOT, OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1 and 1: Open MPI starts as root"}},
        {{"runs/PLAN/checkpoints/", "what a run saved and goes on from; run.dir names another folder"},
         {"runs/PLAN/metrics.jsonl", "a JSON object a line: steps, evaluations, saves"},
         {"runs/PLAN/plan.toml", "the plan with every key and its value"},
         {"runs/PLAN/log.txt", "the log"}}};
}

}  // namespace

void add_completion(CLI::App& app, Chosen& chosen) {
    const auto shell = std::make_shared<std::string>();
    CLI::App& command = add_command(app, "completion", "print the completion of commands for a shell",
                                    "vpp completion bash > ~/.local/share/bash-completion/completions/vpp");
    command.add_option("SHELL", *shell, "whose script")
        ->required()
        ->type_name("SHELL")
        ->check(CLI::IsMember({"bash", "zsh", "fish"}));
    // The commands are read while the parser is there.
    command.callback([shell, &app, &chosen] {
        chosen = [shell, root = command_pages(app)] { return print_completion(*shell, root); };
    });
}

void add_man(CLI::App& app, Chosen& chosen) {
    CLI::App& command = add_command(app, "man", "print the manual page", "vpp man | man --local-file -");
    command.callback([&app, &chosen] {
        chosen = [root = command_pages(app)] {
            std::cout << man_page(root, manual_facts()) << std::flush;
            return 0;
        };
    });
}

}  // namespace vpp
