#include <CLI/CLI.hpp>

#include <filesystem>
#include <iostream>

#include "app/commands/commands.hpp"
#include "app/environment.hpp"
#include "app/job.hpp"
#include "app/kept_files.hpp"
#include "app/terminal.hpp"
#include "base/elapsed.hpp"
#include "base/file.hpp"
#include "base/units.hpp"
#include "comm/mpi_session.hpp"
#include "engine/agreement.hpp"
#include "engine/cost_profile.hpp"
#include "graph/model_output.hpp"
#include "graph/trial_load.hpp"
#include "plan/value.hpp"
#include "report/cost_text.hpp"
#include "stage/tensor_memory.hpp"

namespace vpp {

namespace {

namespace fs = std::filesystem;

struct ProfileArguments {
    PlanArguments plan;
    std::string out = kRunCosts;
};

/// As a plan names it: relative to the plan.
std::string seen_from_plan(const std::string& file, const std::string& plan) {
    std::error_code error;
    const fs::path relative = fs::relative(fs::absolute(file), fs::absolute(plan).parent_path(), error);
    return error || relative.empty() ? fs::absolute(file).string() : relative.string();
}

std::vector<CostRow> rows_of(const CostFile& file) {
    std::vector<CostRow> rows;
    for (const PartTimes& part : file.parts) {
        const OpCosts& times = part.times;
        rows.push_back(
            {part.module, times.forward, times.backward, times.input_gradient, times.weight_gradient, part.kept_bytes});
    }
    return rows;
}

std::string transfer_text(const CostFile& file, bool is_measured) {
    const std::string times =
        fixed_text(file.transfer, 2) + " ms and " + fixed_text(file.transfer_per_mib, 2) + " ms a MiB";
    if (is_measured) return "a message takes " + times + ", measured between ranks 0 and 1";
    return "a message is taken to need " + times + "; mpirun vpp profile with the plan's ranks measures it";
}

void print_profile(const CostProfile& profile, const ProfileArguments& arguments, double seconds) {
    const CostFile& file = profile.file;
    const Terminal terminal = output_terminal();
    std::cout << cost_table(rows_of(file), {terminal.width, terminal.colour}) << "\nmilliseconds of a microbatch of "
              << counted_text(file.microbatch_size, "sample") << ", the lower quartile of "
              << profile.num_passes * (kProfiledMicrobatches - 1) << " or more\non " << file.measured << '\n'
              << counted_text(static_cast<int64_t>(file.parts.size()), "part")
              << ", each timed by itself; what that added, " << fixed_text(profile.overhead * 1e3, 1)
              << " us a part, is taken off\n"
              << transfer_text(file, profile.transfers.is_measured) << '\n'
              << "wrote " << arguments.out << " in " << fixed_text(seconds, 1) << " s; to use it, under [pipeline]:\n"
              << "  cost_file = " << toml_quoted(seen_from_plan(arguments.out, arguments.plan.config)) << '\n'
              << "  split_method = \"AUTO\"      # and schedule_type = \"AUTO\"\n"
              << std::flush;
}

void keep_profile(const CostProfile& profile, const ProfileArguments& arguments, double seconds) {
    write_file_durably(arguments.out, to_json_text(profile.file));
    print_profile(profile, arguments, seconds);
}

/// Ranks time messages too.
int profile_on(const Job& job, const ProfileArguments& arguments) {
    check_outputs({{"--out", arguments.out}}, files_of_plan(job.plan));
    const Datasets data = open_datasets(job.plan, job.first_log());
    const auto start = Clock::now();
    profile_together(job.transport, job.plan, data, job.device,
                     [&](const CostProfile& profile) { keep_profile(profile, arguments, seconds_since(start)); });
    return 0;
}

int run_profile(const ProfileArguments& arguments) {
    if (launch_info(environment_of(launch_variables()))) {
        return run_job(arguments.plan, [&](const Job& job) { return profile_on(job, arguments); });
    }
    count_tensor_memory();
    const Plan plan = resolved_plan(arguments.plan);
    check_outputs({{"--out", arguments.out}}, files_of_plan(plan));
    print_models_plainly();
    trial_load(trial_files(plan), plan.model.trust_sha256);
    set_threads(plan);
    const at::Device device = choose_device(plan, 0);
    const Datasets data = open_datasets(plan);
    const auto start = Clock::now();
    keep_profile(profile_costs(plan, data, device, {}), arguments, seconds_since(start));
    return 0;
}

}  // namespace

void add_profile(CLI::App& app, Chosen& chosen) {
    const auto arguments = std::make_shared<ProfileArguments>();
    CLI::App& command = add_command(app, "profile", "measure what the parts of the model cost here, for AUTO",
                                    "vpp profile plan.toml --out costs.json");
    add_plan_options(command, arguments->plan);
    command.add_option("--out", arguments->out, "where the cost file is written")
        ->type_name("FILE")
        ->capture_default_str();
    command.callback([arguments, &chosen] { chosen = [arguments] { return run_profile(*arguments); }; });
}

}  // namespace vpp
