#include <iostream>

#include "app/commands/commands.hpp"
#include "app/registries.hpp"
#include "data/dataset.hpp"
#include "data/order.hpp"
#include "plan/reader.hpp"
#include "plan/rules.hpp"

namespace vpp {

int run_data_order(const CommandLine& line) {
    Plan plan = load_plan(line.plan.config, line.plan.overrides, registered_names());
    const int world = natural_world(plan);
    plan = resolve_plan(std::move(plan), world);
    const auto dataset = open_dataset(plan, Subset::Train);
    const SampleOrder order(dataset->fields().num_samples, plan.train.seed, plan.data.shuffle);
    for (int64_t step = 0; step < line.steps; ++step) {
        const char* separator = "";
        for (int64_t sample : order.step_samples(step, *plan.train.global_batch_size)) {
            std::cout << separator << sample;
            separator = " ";
        }
        std::cout << '\n';
    }
    return 0;
}

}  // namespace vpp
