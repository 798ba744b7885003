#include "app/planned_program.hpp"

#include <iostream>
#include <utility>

#include "device/device.hpp"
#include "engine/agreement.hpp"
#include "graph/model_output.hpp"
#include "graph/trial_load.hpp"
#include "program/prepare.hpp"

namespace vpp {

std::vector<Card> cards_for(const Plan& plan) {
    if (plan.mesh.device == "cpu") return {};
    KnownCards known = known_cards();
    if (!known.problem.empty()) std::cerr << "vpp: no card is known: " << known.problem << std::endl;
    return std::move(known.cards);
}

Program make_program(const Plan& plan, const std::vector<Card>& cards) {
    print_models_plainly();
    trial_load(trial_files(plan), plan.model.trust_sha256);
    set_threads(plan);
    const Datasets data = open_datasets(plan);
    Program program = prepare(plan, data, planned_device(plan.mesh.device, cards)).program;
    check_model_rules(plan, program);
    return program;
}

Program make_program(const Plan& plan) {
    return make_program(plan, cards_for(plan));
}

}  // namespace vpp
