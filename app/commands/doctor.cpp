#include <torch/version.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>
#include <new>

#include "app/commands/commands.hpp"
#include "app/environment.hpp"
#include "app/job.hpp"
#include "app/plan_arguments.hpp"
#include "app/registries.hpp"
#include "app/run_lock.hpp"
#include "app/terminal.hpp"
#include "base/error.hpp"
#include "base/shell.hpp"
#include "checkpoint/survey.hpp"
#include "comm/mpi_session.hpp"
#include "comm/nccl.hpp"
#include "device/cards.hpp"
#include "device/device.hpp"
#include "engine/agreement.hpp"
#include "engine/run_facts.hpp"
#include "graph/initial_values.hpp"
#include "graph/model_files.hpp"
#include "graph/model_output.hpp"
#include "graph/trial_load.hpp"
#include "launch/card_findings.hpp"
#include "launch/child.hpp"
#include "launch/machine_findings.hpp"
#include "launch/mpirun_line.hpp"
#include "launch/plan_findings.hpp"
#include "launch/trial.hpp"
#include "plan/reader.hpp"
#include "plan/replaced_plan.hpp"
#include "plan/rules.hpp"
#include "plan/training_rules.hpp"
#include "program/estimate.hpp"
#include "program/prepare.hpp"
#include "schedule/simulator.hpp"

namespace vpp {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::seconds kAnswer{10};
constexpr const char* kCapability = "ATEN_CPU_CAPABILITY";

struct DoctorArguments {
    PlanArguments plan;  ///< its config may be empty
    int ranks = 0;       ///< 0 = what the plan names, or a rank for each core
    bool json = false;
};

/// Gathers facts in the order in which a training would meet them; the library judges each.
class Doctor {
  public:
    explicit Doctor(const DoctorArguments& arguments)
        : arguments_(arguments), host_(look_at_host(environment_of(host_variables()))) {
        if (!has_cuda_parts()) return;
        cards_ = {true, cuda_version() + ", " + nccl_version(), {}, mpi_moves_card_memory()};
    }

    std::vector<Finding> look() {
        const BuildFacts build = build_facts();
        add(judge_build(build));
        look_at_plan();
        request_.command = {program_name()};
        for (const Finding& finding : judge_mpi(mpi_facts(), host_, request_)) add(finding);
        add(judge_cores(host_, request_));
        if (attempt("cards", [&] { cards_.cards = cuda_cards(); })) add(judge_cards(host_, cards_, request_));
        look_at_model();
        look_at_disk();
        return findings_;
    }

  private:
    void add(Finding finding) { findings_.push_back(std::move(finding)); }

    /// What the body throws becomes a finding.
    template <typename Body>
    bool attempt(const std::string& topic, const Body& body) {
        try {
            body();
            return true;
        } catch (const Error& error) {
            add(judge_error(topic, error));
        } catch (const std::bad_alloc&) {
            add(judge_error(topic, Error(ErrorKind::OutOfMemory, "out of memory; use more stages or microbatches")));
        }
        return false;
    }

    static BuildFacts build_facts() {
        const auto variables = environment_of({kCapability});
        BuildFacts build;
        build.vpp = VPP_VERSION;
        build.torch = TORCH_VERSION;
        build.pinned_torch = VPP_PINNED_TORCH;
        build.cpu_capability = numeric_environment(Plan{}).cpu_capability;
        build.wanted_capability = variables.empty() ? "" : variables.begin()->second;
        return build;
    }

    void look_at_plan() {
        request_.ranks = arguments_.ranks > 0 ? arguments_.ranks : host_.cores;
        if (arguments_.plan.config.empty()) return;
        attempt("plan", [&] {
            Plan plan = load_plan(arguments_.plan.config, arguments_.plan.overrides, registered_names());
            if (arguments_.ranks == 0) request_.ranks = natural_world(plan);
            request_.threads = plan.mesh.threads;
            plan = resolve_plan(std::move(plan), request_.ranks);
            check_trains(plan);
            check_length(plan);
            check_replaced_plan(plan, registered_names());
            plan_ = std::move(plan);
        });
        if (plan_) add(judge_plan(plan_facts()));
    }

    PlanFacts plan_facts() const {
        PlanFacts facts;
        facts.file = plan_->file;
        facts.ranks = request_.ranks;
        facts.pp = *plan_->mesh.pp;
        facts.dp = *plan_->mesh.dp;
        facts.steps = plan_->train.steps;
        facts.epochs = plan_->train.epochs;
        facts.batch = *plan_->train.global_batch_size;
        return facts;
    }

    MpiFacts mpi_facts() const {
        MpiFacts mpi;
        mpi.linked_text = mpi_library_version();
        const ChildWords launcher = listen_to({"mpirun", "--version"}, kAnswer);
        if (launcher.code != 0) return mpi;
        mpi.launcher = launcher.text;
        if (open_mpi_version(mpi.launcher).empty()) return mpi;
        mpi.thread_multiple = thread_multiple_of(listen_to({"ompi_info", "--parsable"}, kAnswer).text);
        mpi.trouble = find_launch_trouble(request_, host_);
        return mpi;
    }

    void look_at_model() {
        if (!plan_) return;
        print_models_plainly();
        if (!attempt("model", [&] { trial_load(trial_files(*plan_), plan_->model.trust_sha256); })) return;
        set_threads(*plan_);
        Datasets data;
        if (!attempt("data", [&] { data = open_datasets(*plan_); })) return;
        const bool is_prepared = attempt("model", [&] {
            Program program = prepare(*plan_, data, planned_device(plan_->mesh.device, cards_.cards)).program;
            check_model_rules(*plan_, program);
            check_have_values(*plan_, program.training.graph);
            program_ = std::move(program);
        });
        if (!is_prepared) return;
        for (const Finding& finding : judge_prepared(prepared_facts(data))) add(finding);
        const bool on_cards = plan_->mesh.device != "cpu" && !cards_.cards.empty();
        const auto judge = is_placed_by_mpirun(request_, host_) ? judge_spread_memory : judge_memory;
        add(judge(memory_need(on_cards), host_.available_memory_bytes));
        if (on_cards) add(judge_card_memory(card_need(), cards_.cards));
    }

    PreparedFacts prepared_facts(const Datasets& data) const {
        const Phase& training = program_->training;
        PreparedFacts facts;
        facts.model = file_names(*plan_);
        facts.ops = training.graph.num_ops();
        for (const StageSpec& stage : training.split.stages) facts.parameters += stage.num_parameters;
        facts.legal_cuts = training.graph.num_legal_cuts();
        facts.warnings = training.graph.warnings;
        facts.data = plan_->data.kind;
        facts.samples = program_->fields.num_samples;
        if (data.validation) facts.validation_samples = data.validation->fields().num_samples;
        facts.schedule = training.schedule.name;
        facts.stages = training.schedule.num_stages();
        facts.bubble = simulate(training.schedule).bubble_rate();
        return facts;
    }

    /// Of each rank on its card.
    std::vector<int64_t> card_need() const {
        std::vector<int64_t> bytes(static_cast<size_t>(request_.ranks), 0);
        for (const RankEstimate& rank : estimate_ranks(*plan_, *program_)) {
            const int64_t on_card = rank.total_bytes() - rank.host_bytes();
            for (int number : rank.ranks) bytes.at(static_cast<size_t>(number)) = on_card;
        }
        return bytes;
    }

    /// Of the host.
    MemoryNeed memory_need(bool on_cards) const {
        MemoryNeed need;
        need.ranks = request_.ranks;
        need.program_bytes = own_memory_bytes();
        for (const RankEstimate& rank : estimate_ranks(*plan_, *program_)) {
            const auto replicas = static_cast<int64_t>(rank.ranks.size());
            const int64_t activations = on_cards ? 0 : rank.activation_bytes;
            const int64_t state = on_cards ? rank.host_bytes() : rank.total_bytes() - activations;
            need.activation_bytes += replicas * activations;
            need.state_bytes += replicas * state;
            need.fullest_bytes = std::max(need.fullest_bytes, need.program_bytes + state + activations);
        }
        return need;
    }

    void look_at_disk() {
        if (!plan_ && !arguments_.plan.config.empty()) return;  // nobody knows the folder
        const DiskFacts disk = try_disk(plan_ ? plan_->run.dir : "runs");
        SaveNeed need;
        if (program_ && disk.problem.empty()) {
            for (const RankEstimate& rank : estimate_ranks(*plan_, *program_)) {
                need.checkpoint_bytes += rank.parameter_bytes + rank.buffer_bytes + rank.unshared_optimizer_bytes;
            }
            need.keep = plan_->checkpoint.keep;
            need.kept = static_cast<int64_t>(CheckpointStore(plan_->run.dir).list().size());
        }
        add(judge_disk(disk, need));
        if (program_ && disk.problem.empty()) look_at_run();
    }

    /// What lies in the run folder: somebody else's job, or checkpoints to go on from.
    void look_at_run() {
        const fs::path run = plan_->run.dir;
        attempt("run", [&] {
            check_run_folder_is_free(run);
            ResumeFacts facts;
            facts.run = run.string();
            facts.resume = plan_->checkpoint.resume;
            facts.steps = plan_->train.steps;
            if (const fs::path folder = resumed_folder(facts); !folder.empty()) {
                const CheckpointState state = CheckpointReader(folder).manifest().state;
                compare_facts(state, facts_of(*plan_, *program_), folder, make_silent_logger());
                facts.step = state.step;
            }
            add(judge_resume(facts));
        });
    }

    /// As a training chooses it, but by sizes and headers alone.
    fs::path resumed_folder(ResumeFacts& facts) const {
        const std::string& resume = plan_->checkpoint.resume;
        if (resume == "no") return {};
        if (resume != "auto") return resume;
        const RunSurvey survey = survey_run(plan_->run.dir, false);
        if (survey.resumed) return survey.checkpoints[*survey.resumed].folder;
        for (const CheckpointSummary& lost : survey.checkpoints) {
            if (lost.is_part) {  // it may be whole with those of other hosts
                facts.has_parts = true;
                continue;
            }
            const ErrorKind kind = lost.damage.bars_older ? lost.damage.kind : ErrorKind::BadData;
            throw Error(kind, "none of the checkpoints in " + plan_->run.dir + " can be resumed: " + lost.damage.text +
                                  "; bring one back, or start anew with checkpoint.resume = \"no\"");
        }
        return {};
    }

    const DoctorArguments& arguments_;
    HostFacts host_;
    CardFacts cards_;
    LaunchRequest request_;
    std::optional<Plan> plan_;
    std::optional<Program> program_;
    std::vector<Finding> findings_;
};

std::vector<std::string> line_of_run(const DoctorArguments& arguments) {
    std::vector<std::string> line{"vpp", "run"};
    if (arguments.ranks > 0) line.insert(line.end(), {"-n", std::to_string(arguments.ranks)});
    line.push_back(arguments.plan.config);
    for (const std::string& setting : arguments.plan.overrides) line.insert(line.end(), {"--set", setting});
    return line;
}

int run_doctor(const DoctorArguments& arguments) {
    const std::vector<Finding> findings = Doctor(arguments).look();
    const int code = exit_code_of(findings);
    if (arguments.json) {
        std::cout << to_json_text(findings) << std::endl;
        return code;
    }
    std::cout << to_text(findings, output_terminal().colour);
    if (code == 0 && !arguments.plan.config.empty())
        std::cout << "start with: " << shell_line(line_of_run(arguments)) << "\n";
    std::cout.flush();
    return code;
}

}  // namespace

void add_doctor(CLI::App& app, Chosen& chosen) {
    const auto arguments = std::make_shared<DoctorArguments>();
    CLI::App& command =
        add_command(app, "doctor", "look for what would go wrong here, and say how to mend it", "vpp doctor plan.toml");
    add_plan_options(command, arguments->plan);
    command.get_option("--config")->required(false);
    command.add_option("-n", arguments->ranks, "number of ranks; default: what the plan names")
        ->check(CLI::Range(1, kMostRanks));
    command.add_flag("--json", arguments->json, "the findings as JSON");
    command.callback([arguments, &chosen] { chosen = [arguments] { return run_doctor(*arguments); }; });
}

}  // namespace vpp
