#include <CLI/CLI.hpp>

#include <iostream>

#include "app/commands/commands.hpp"
#include "app/commands/data_commands.hpp"
#include "app/plan_arguments.hpp"
#include "data/dataset.hpp"
#include "data/order.hpp"

namespace vpp {

namespace {

struct OrderArguments {
    PlanArguments plan;
    int64_t steps = 10;
};

int run_data_order(const OrderArguments& arguments) {
    const Plan plan = resolved_plan(arguments.plan);
    const auto dataset = open_dataset(plan, Subset::Train);
    const SampleOrder order = training_order(*dataset, plan);
    const int64_t batch = *plan.train.global_batch_size;
    for (int64_t step = 0; step < arguments.steps && std::cout; ++step) {
        const char* separator = "";
        for (const Draw& draw : order.draws(step * batch, batch)) {
            std::cout << separator << dataset->stored_sample(draw.sample);
            separator = " ";
        }
        std::cout << '\n';
    }
    return 0;
}

}  // namespace

void add_data(CLI::App& app, Chosen& chosen) {
    CLI::App& group = add_command_group(app, "data", "look at data, and make files of them");
    add_data_info(group, chosen);
    add_data_make(group, chosen);
    const auto arguments = std::make_shared<OrderArguments>();
    CLI::App& command = add_command(group, "order", "print the sample indices of every step, a line a step",
                                    "vpp data order plan.toml --steps 3");
    add_plan_options(command, arguments->plan);
    command.add_option("--steps", arguments->steps, "how many steps")
        ->check(CLI::Range(1, 1 << 30))
        ->capture_default_str();
    command.callback([arguments, &chosen] { chosen = [arguments] { return run_data_order(*arguments); }; });
}

}  // namespace vpp
