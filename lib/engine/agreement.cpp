#include "engine/agreement.hpp"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <torch/version.h>

#include <algorithm>
#include <iterator>
#include <sstream>

#include "base/error.hpp"
#include "comm/collective.hpp"
#include "device/device.hpp"
#include "engine/engine.hpp"
#include "graph/initial_values.hpp"
#include "optim/groups.hpp"

namespace vpp {

namespace {

/// "[optimizer]\nlr = 1" as "[optimizer] lr = 1": a line says by itself which key it is.
std::string lines_with_sections(const std::string& toml) {
    std::istringstream lines(toml);
    std::string text, section;
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with('[')) {
            section = line + ' ';
        } else {
            text += section + line + '\n';
        }
    }
    return text;
}

/// The others wait while rank 0 searches.
double most_seconds(const SearchPlan& search) {
    constexpr double kPreparation = 300, kSlowestMovesASecond = 20'000;
    return kPreparation + static_cast<double>(search.moves) / kSlowestMovesASecond;
}

bool loss_has_gradient(const Graph& graph) {
    const std::vector<int>& tensors = graph.values.at(static_cast<size_t>(graph.loss)).tensors;
    return std::ranges::any_of(tensors,
                               [&](int tensor) { return graph.tensors[static_cast<size_t>(tensor)].requires_grad; });
}

}  // namespace

std::string NumericEnvironment::text() const {
    return "LibTorch " + torch_version + ", " + cpu_capability + ", " + std::to_string(threads) +
           (threads == 1 ? " thread" : " threads") + (device.empty() ? "" : ", " + device);
}

NumericEnvironment numeric_environment(const Plan& plan, at::Device device) {
    return {TORCH_VERSION, at::get_cpu_capability(), plan.mesh.threads,
            device.is_cpu() ? "" : device_text(device, cuda_cards())};
}

void set_threads(const Plan& plan) {
    at::set_num_threads(plan.mesh.threads);
}

void check_model_rules(const Plan& plan, const Program& program) {
    if (!plan.pipeline.forward_only) total_steps(plan, program.fields.num_samples);  // or its error
    std::vector<std::string> names, frozen;
    for (const GraphParameter& parameter : program.training.graph.parameters) {
        (parameter.requires_grad ? names : frozen).push_back(parameter.name);
    }
    std::vector<Problem> problems = check_groups(plan, names, frozen);
    std::ranges::move(check_init_rules(plan, program.training.graph), std::back_inserter(problems));
    if (!problems.empty()) throw Error(ErrorKind::Plan, std::move(problems));
    if (plan.pipeline.forward_only || names.empty() || loss_has_gradient(program.training.graph)) return;
    throw Error(ErrorKind::BadData,
                "the loss leads back to no parameter that is trained, so none would ever change; look in forward for "
                "what cuts it off (torch.no_grad, detach, .data, item), and at model.freeze",
                plan.where("model"));
}

Prepared agree_on_program(Transport& transport, const Plan& plan, const Datasets& data, at::Device device) {
    const auto make = [&] {
        Prepared prepared = prepare(plan, data, device);
        check_model_rules(plan, prepared.program);
        check_have_values(plan, prepared.program.training.graph);
        return prepared;
    };
    return agree_on_program(transport, plan, data, make, device);
}

Prepared agree_on_program(Transport& transport, const Plan& plan, const Datasets& data,
                          const std::function<Prepared()>& make, at::Device device) {
    check_equal(transport, "the plan", lines_with_sections(plan.resolved_text));
    check_equal(transport, "the data files", data.digest());
    check_equal(transport, "the numeric environment", numeric_environment(plan, device).text());
    Prepared prepared;
    transport.set_position("preparing the program");
    if (plan.pipeline.schedule_type == "AUTO") transport.set_deadline(most_seconds(plan.pipeline.search));
    // Or its error, so that nobody waits for a program that never comes.
    const std::string program = from_first_rank(transport, [&] {
        prepared = make();
        return to_string(to_bytes(prepared.program));
    });
    if (transport.rank() != 0) {
        prepared.program = program_from_bytes(to_bytes(program));
        prepared.sources = open_sources(plan, prepared.program, device);
    }
    check_equal(transport, "the program", to_hex(digest_of(prepared.program)));
    return prepared;
}

}  // namespace vpp
