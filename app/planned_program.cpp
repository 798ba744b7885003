#include "app/planned_program.hpp"

#include "engine/agreement.hpp"
#include "program/prepare.hpp"

namespace vpp {

Program make_program(const Plan& plan) {
    set_threads(plan);
    const Datasets data = open_datasets(plan);
    Program program = prepare(plan, data).program;
    check_model_rules(plan, program);
    return program;
}

}  // namespace vpp
