// vpp explain: a key, a section, the whole list, or the reference page.
#include "plan/explain.hpp"

#include <CLI/CLI.hpp>

#include <iostream>

#include "app/commands/commands.hpp"
#include "app/registries.hpp"
#include "plan/reference.hpp"

namespace vpp {

namespace {

struct ExplainArguments {
    std::string key;
    bool markdown = false;
};

int run_explain(const ExplainArguments& arguments) {
    if (arguments.markdown) {
        std::cout << reference_page(registered_names());
    } else {
        std::cout << (arguments.key.empty() ? explain_sections() : explain(arguments.key, registered_names()));
    }
    std::cout.flush();
    return 0;
}

}  // namespace

void add_explain(CLI::App& app, Chosen& chosen) {
    const auto arguments = std::make_shared<ExplainArguments>();
    CLI::App& command = add_command(app, "explain", "what a key or a section of a plan means and takes",
                                    "vpp explain pipeline.schedule_type");
    CLI::Option* key =
        command.add_option("KEY", arguments->key, "section.key, key or section; left out: a list of the sections")
            ->type_name("KEY");
    command.add_flag("--markdown", arguments->markdown, "all keys as a page of Markdown")->excludes(key);
    command.callback([arguments, &chosen] { chosen = [arguments] { return run_explain(*arguments); }; });
}

}  // namespace vpp
