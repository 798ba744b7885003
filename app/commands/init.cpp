// vpp init: an example to begin with, or a plan for a model file that is there.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <system_error>

#include "app/commands/commands.hpp"
#include "app/unfinished_outputs.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/new_folder.hpp"
#include "base/shell.hpp"
#include "base/units.hpp"
#include "base/utf8.hpp"
#include "examples/examples.hpp"
#include "graph/model_output.hpp"
#include "graph/trial_load.hpp"

namespace vpp {

namespace fs = std::filesystem;

namespace {

struct InitArguments {
    std::string example, folder, model;
};

int list_examples() {
    size_t width = 0;
    for (const Example& example : all_examples()) width = std::max(width, example.name.size());
    for (const Example& example : all_examples()) {
        std::cout << example.name << std::string(width + 2 - example.name.size(), ' ') << example.sentence << '\n';
    }
    std::cout << "\nvpp init NAME makes a folder of that name with a plan and all that it needs." << std::endl;
    return 0;
}

/// The same folder in the words of the user, without a dot or a slash at the end.
std::string shown_folder(const InitArguments& arguments) {
    const fs::path named = arguments.folder.empty() ? arguments.example : arguments.folder;
    const fs::path folder = named.lexically_normal();
    return (folder.has_filename() ? folder : folder.parent_path()).string();
}

/// What goes into the plan.
void check_utf8(const std::string& what, const std::string& text, const std::string& remedy) {
    if (as_utf8(text) == text) return;
    throw Error(ErrorKind::CommandLine,
                "the " + what + " is not UTF-8, as a plan must be (got '" + printable(as_utf8(text)) + "'); " + remedy);
}

void check_folder(const std::string& shown) {
    if (printable(shown) != shown) {
        throw Error(ErrorKind::CommandLine, "the folder's name has control characters, which no plan may have (got '" +
                                                printable(shown) + "')");
    }
    check_utf8("folder's name", shown, "name another folder");
}

/// Opens the model, after a child process has loaded it.
void read_model(const InitArguments& arguments, ExampleRequest& request) {
    print_models_plainly();
    trial_load({{arguments.model, std::nullopt}}, {});
    request.model = std::make_shared<const Archive>(arguments.model);
    const fs::path model = fs::absolute(arguments.model);
    std::error_code error;
    const fs::path relative = fs::proximate(model, fs::absolute(shown_folder(arguments)), error);
    request.model_path = (error ? model : relative).string();
    check_utf8("path of the model", request.model_path, "rename it");
}

void write_files(const std::vector<ExampleFile>& files, NewFolder& folder) {
    for (const ExampleFile& file : files) {
        OutputFile out(folder.temporary() / file.name);
        out.write_text(file.contents);
        out.finish();
    }
    folder.publish();
}

void print_made(const Example& example, const MadeExample& made, const std::string& folder) {
    std::cout << printable(folder) << ": " << example.sentence << '\n';
    size_t width = 0;
    for (const ExampleFile& file : made.files) width = std::max(width, file.name.size());
    for (const ExampleFile& file : made.files) {
        std::cout << "  " << file.name << std::string(width + 2 - file.name.size(), ' ')
                  << bytes_text(static_cast<int64_t>(file.contents.size())) << '\n';
    }
    for (const std::string& note : made.notes) std::cout << "note: " << note << '\n';
    if (!made.first.empty()) {
        std::cout << "first: " << made.first << std::endl;
        return;
    }
    const std::string plan = shell_quoted(printable((fs::path(folder) / "plan.toml").string()));
    std::cout << "next:\n  vpp inspect " << plan << "\n  vpp run " << plan << std::endl;
}

int run_init(const InitArguments& arguments) {
    if (arguments.example.empty()) return list_examples();
    const Example& example = example_of(arguments.example);
    if (example.reads_model == arguments.model.empty()) {
        throw Error(ErrorKind::CommandLine,
                    example.reads_model
                        ? "the example " + example.name + " is made for a model file; add --model FILE"
                        : "--model is for the example own-model; " + example.name + " makes a model of its own");
    }
    const std::string shown = shown_folder(arguments);
    check_folder(shown);
    const UnfinishedOutputs unfinished({shown});
    NewFolder folder(shown);
    ExampleRequest request{fs::absolute(shown).lexically_normal().filename().string()};
    if (example.reads_model) read_model(arguments, request);
    const MadeExample made = example.make(request);
    write_files(made.files, folder);
    print_made(example, made, shown);
    return 0;
}

/// The names for help and shells; a wrong one gets the nearest name in run_init.
CLI::Validator example_names() {
    std::string names;
    for (const Example& example : all_examples()) names += (names.empty() ? "{" : ",") + example.name;
    return {[](std::string&) { return std::string(); }, names + "}"};
}

}  // namespace

void add_init(CLI::App& app, Chosen& chosen) {
    const auto arguments = std::make_shared<InitArguments>();
    CLI::App& command =
        add_command(app, "init", "make an example: a plan with comments, its model and its data", "vpp init gpt-tiny");
    command.add_option("NAME", arguments->example, "the example; left out: a list of them")
        ->type_name("NAME")
        ->check(example_names());
    command.add_option("DIR", arguments->folder, "a new folder, or an empty one; default: NAME")->type_name("DIR");
    command.add_option("--model", arguments->model, "own-model: the TorchScript file to write a plan for")
        ->type_name("FILE");
    command.callback([arguments, &chosen] { chosen = [arguments] { return run_init(*arguments); }; });
}

}  // namespace vpp
