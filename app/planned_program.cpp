#include "app/planned_program.hpp"

#include <iostream>

#include "device/device.hpp"
#include "engine/agreement.hpp"
#include "graph/model_output.hpp"
#include "graph/trial_load.hpp"
#include "program/prepare.hpp"

namespace vpp {

Program make_program(const Plan& plan) {
    print_models_plainly();
    trial_load(trial_files(plan), plan.model.trust_sha256);
    set_threads(plan);
    const Datasets data = open_datasets(plan);
    const std::string problem = plan.mesh.device == "cpu" ? "" : known_cards().problem;
    if (!problem.empty()) std::cerr << "vpp: no card is known: " << problem << std::endl;
    Program program = prepare(plan, data, planned_device(plan.mesh.device)).program;
    check_model_rules(plan, program);
    return program;
}

}  // namespace vpp
