#pragma once
// A program of three commands, for the tests of what is made from commands.
#include "help/command_page.hpp"
#include "help/completion.hpp"

namespace vpp::test {

inline CommandPage small_program() {
    const OptionPage help{{"-h", "--help"}, "", "", "print this help", "", {}, false, false};
    CommandPage root{"vpp", "trains models: the same bits", {"vpp train plan.toml"}, {}, {}};
    root.options = {{{"--version"}, "", "", "print what it is built of", "", {}, false, false}, help};
    CommandPage train{"vpp train", "train; start it with mpirun", {"mpirun -np 4 vpp train plan.toml"}, {}, {}};
    train.options = {{{"--config"}, "PLAN", "PLAN", "the plan [TOML]", "", {}, true, false},
                     {{"--set"}, "KEY=VALUE", "", "override a key of the plan", "", {}, false, true},
                     {{"-l", "--log-level"},
                      "LEVEL",
                      "",
                      "what goes to the log, 'info' or other",
                      "info",
                      {"debug", "info"},
                      false,
                      false},
                     {{"--steps"}, "N", "", "how many", "", {}, false, false},
                     help};
    CommandPage group{"vpp schedule", "look at schedules", {"vpp schedule check a.csv"}, {help}, {}};
    CommandPage check{"vpp schedule check", "prove that files are sound", {"vpp schedule check a.csv"}, {}, {}};
    check.options = {{{}, "", "FILE", "the file", "", {}, true, true},
                     {{"--out"}, "DIR", "", "where to write", "", {}, true, false},
                     {{"--json"}, "", "", "the result as JSON", "", {}, false, false},
                     help};
    CommandPage explain{"vpp explain", "say what a key means", {"vpp explain train.steps"}, {}, {}};
    explain.options = {{{}, "", "KEY", "a key", "", {}, false, false}, help};
    group.commands = {check};
    root.commands = {train, group, explain};
    return root;
}

/// The same with a command that starts another one.
inline CommandPage program_with_run() {
    CommandPage root = small_program();
    CommandPage run{"vpp run", "start ranks", {"vpp run plan.toml"}, {}, {}};
    run.options = {{{"--print"}, "", "", "print the line", "", {}, false, false},
                   {{}, "", "PLAN", "the plan", "", {}, true, false},
                   root.options.back()};
    run.starts = {"train"};
    root.commands.push_back(run);
    return root;
}

/// Settings of a plan and keys to explain, as completion takes them.
inline const std::vector<SettingPage> kSmallSettings = {
    {"train.steps", "Optimizer updates.", {}}, {"optimizer.group[0].nesterov", "SGD: Nesterov.", {"true", "false"}}};
inline const std::vector<std::string> kSmallKeys = {"train", "train.steps"};

}  // namespace vpp::test
