#include "app/job.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <thread>

#include "app/environment.hpp"
#include "app/failure.hpp"
#include "app/link_environment.hpp"
#include "app/registries.hpp"
#include "app/stop_signals.hpp"
#include "base/error.hpp"
#include "base/process.hpp"
#include "comm/collective.hpp"
#include "comm/cores.hpp"
#include "comm/mpi_session.hpp"
#include "comm/mpi_transport.hpp"
#include "comm/transport_kinds.hpp"
#include "comm/watchdog.hpp"
#include "device/cards.hpp"
#include "device/device.hpp"
#include "engine/agreement.hpp"
#include "engine/program_links.hpp"
#include "engine/value_ranges.hpp"
#include "graph/model_output.hpp"
#include "graph/trial_load.hpp"
#include "launch/host_facts.hpp"
#include "plan/reader.hpp"
#include "plan/rules.hpp"
#include "plan/transports.hpp"
#include "stage/tensor_memory.hpp"
#include "stage/torch_device_memory.hpp"

namespace vpp {

namespace {

/// Ends the job from the watchdog's thread, when the ranks themselves cannot.
class HardEnd {
  public:
    HardEnd(EndRecord& end, int launch_rank) : end_(end), launch_rank_(launch_rank) {}
    void attach(MpiSession* session) { session_ = session; }
    void operator()(const std::string& text, int code) const {
        // Another rank has said why they cannot start, and mpirun ends the job.
        if (!session_ && launch_rank_ > 0 && stop_signals::is_being_ended()) _exit(code);
        say(text);
        end_.write(code, text);
        if (session_) session_->abort(code);
        _exit(code);
    }

  private:
    EndRecord& end_;
    int launch_rank_;
    MpiSession* session_ = nullptr;
};

/// A card that has failed fails again where its memory is given back, in destructors, which ends the process before
/// anybody has said why.
class TerminateHandler {
  public:
    explicit TerminateHandler(std::function<void(const Failure&)> end) {
        end_ = std::move(end);
        before_ = std::set_terminate([] {
            if (std::current_exception() && end_) end_(current_failure());
            std::abort();
        });
    }
    ~TerminateHandler() {
        std::set_terminate(before_);
        end_ = nullptr;
    }
    TerminateHandler(const TerminateHandler&) = delete;
    TerminateHandler& operator=(const TerminateHandler&) = delete;

  private:
    static inline std::function<void(const Failure&)> end_;
    std::terminate_handler before_ = nullptr;
};

std::string speaker(const MpiSession& session) {
    return session.size() > 1 ? "rank " + std::to_string(session.rank()) + ": " : "";
}

/// mesh.transport as it is: what auto stands for here, agreed upon by all ranks.
std::string find_transport(Transport& transport, const Plan& plan, at::Device device) {
    const std::string& kind = plan.mesh.transport;
    if (transport_named(kind).links == UsesLinks::No) return kind;
    if (!has_cuda_parts() || transport.size() == 1) return "mpi";
    const Card card = device.is_cpu() ? Card{} : cuda_cards().at(static_cast<size_t>(device.index()));
    const std::string host = host_id();
    return choose_transport(transport, kind,
                            {.id = card.id,
                             .is_waited_for = waits_for_kernels(),
                             .host = nccl_host(),
                             .slot = host.empty() || card.slot.empty() ? "" : host + " " + card.slot});
}

/// Messages of cards by MPI: from card to card where it moves their memory on all ranks, else through the host's.
std::string carry_by_mpi(MpiTransport& transport, at::Device device) {
    const bool is_direct = is_everywhere(transport, !device.is_cpu() && mpi_moves_card_memory());
    if (!device.is_cpu()) transport.carry(is_direct ? make_device_memory(device) : make_staged_memory(device));
    return is_direct ? "from card to card by MPI" : "through the host's memory by MPI";
}

void warn_of_overrides(const Logger& log) {
    const std::string overrides = nccl_overrides();
    if (overrides.empty()) return;
    log->warn(
        "NCCL follows its environment in place of vpp (" + overrides +
        "): messages may take more of a card than there is, and ranks wait for each other; leave that out, or set "
        "mesh.transport = \"mpi\"");
}

/// How values go between ranks, as all of them have agreed.
void choose_way(MpiTransport& transport, Plan& plan, at::Device device, const std::string& replaced,
                const Logger& log) {
    plan.mesh.transport = find_transport(transport, plan, device);
    if (!has_cuda_parts() || transport.size() == 1) return;
    const bool by_links = transport_named(plan.mesh.transport).links == UsesLinks::Yes;
    const std::string way = by_links ? "from card to card by NCCL" : carry_by_mpi(transport, device);
    if (device.is_cpu() || transport.rank() != 0) return;
    log->info("values go " + way);
    if (!by_links) return;
    warn_of_overrides(log);
    if (!replaced.empty()) {
        log->warn("not followed, as ranks that send by NCCL could wait for each other: " + replaced);
    }
}

int run_with_mpi(const std::string& log_level, Plan plan, const std::optional<LaunchInfo>& launch, at::Device device,
                 const std::string& replaced, const std::function<int(const Job&)>& body) {
    EndRecord end;
    const int launch_rank = launch ? launch->rank : 0;
    HardEnd hard_end(end, launch_rank);
    Watchdog watchdog({[&hard_end](const std::string& text, int code) { hard_end(text, code); }});
    MpiSessionOptions session_options;
    session_options.watchdog = &watchdog;
    session_options.launch_rank = launch_rank;
    MpiSession session(session_options);
    hard_end.attach(&session);
    try {
        if (launch) check_is_one_job(*launch, session.size());
    } catch (...) {
        // Each process is alone and takes itself for rank 0.
        session.keep_open();
        _exit(told_once(launch));
    }
    try {
        MpiTransportOptions options;
        options.overlap = plan.pipeline.overlap_p2p_comm;
        options.watchdog = &watchdog;
        MpiTransport transport(session, options);
        const TerminateHandler at_terminate([&](const Failure& failure) {
            hard_end(speaker(session) + transport.position() + ": " + failure.text, failure.code);
        });
        const HostLoad load{session.local_size(), plan.mesh.threads, session.local_cores(), session.host_cores(),
                            !device.is_cpu()};
        const Logger log = make_logger(log_level, session.size() > 1 ? session.rank() : -1);
        if (load.is_crowded() && session.rank() == 0) log->info(crowded_text(load));
        if (waits_for_kernels()) plan.pipeline.cuda_graphs = false;  // each op is to be given by itself
        choose_way(transport, plan, device, replaced, log);
        const int code = body({plan, transport, log, end, load.is_crowded(), launch && launch->by_srun, device});
        transport.set_position("the end of the job");
        barrier(transport);
        return code;
    } catch (...) {
        const Failure failure = current_failure();
        if (session.rank() != 0) {
            // Who has lost a rank has told the others so.
            if (failure.code != exit_code(ErrorKind::RankLost)) std::this_thread::sleep_for(kFirstRankSpeaks);
            if (stop_signals::is_being_ended()) _exit(failure.code);
        }
        const std::string text = speaker(session) + failure.text;
        say(text);
        end.write(failure.code, text);
        session.keep_open();
        if (session.size() > 1) session.abort(failure.code);
        _exit(failure.code);
    }
}

void leave_out(const char* variable, const std::string& why, int local_rank) {
    if (unset(variable) && local_rank == 0) std::cerr << "vpp: " << variable << " is not followed: " << why << '\n';
}

/// LibTorch chose its allocator when it was loaded.
void refuse_other_allocators() {
    for (const auto& [name, value] : environment_of({kAllocatorVariables.begin(), kAllocatorVariables.end()})) {
        if (value.find(kOtherAllocator) == std::string::npos) continue;
        throw Error(ErrorKind::Plan, name + " has " + kOtherAllocator +
                                         ", and vpp counts on LibTorch's own allocator; leave that out, or set "
                                         "mesh.device = \"cpu\"");
    }
}

/// Whether ranks may send by NCCL. Asked before CUDA is: where the host tells of its cards, each rank needs one, or a
/// host of its own to NCCL.
bool may_use_links(const Plan& plan, const std::optional<LaunchInfo>& launch) {
    if (!launch || launch->size == 1 || plan.mesh.device == "cpu") return false;
    if (transport_named(plan.mesh.transport).links == UsesLinks::No) return false;
    const size_t num_cards = find_gpus().size();
    return num_cards == 0 || !nccl_host().empty() || static_cast<size_t>(launch->local_size) <= num_cards;
}

}  // namespace

at::Device choose_device(const Plan& plan, int local_rank) {
    if (plan.mesh.device == "cpu") return at::kCPU;
    leave_out(kTunableVariable, "products chosen by trial differ in their bits", local_rank);
    leave_out(kNoCacheVariable, "recordings of ops need memory that stays", local_rank);
    set_unless_set(kCublasVariable, kCublasWorkspace);
    set_unless_set(kCudaQueuesVariable, kCudaQueues);  // read when CUDA is first asked for cards
    const std::vector<Card> cards = cuda_cards();
    const at::Device device = device_of_rank(resolve_device_kind(plan.mesh.device, cards), local_rank, cards);
    if (!device.is_cpu()) refuse_other_allocators();
    use_exact_kernels(device);
    start_device(device);
    return device;
}

int run_job(const PlanArguments& arguments, const std::function<int(const Job&)>& body,
            const std::function<void(Plan&)>& adapt, const std::function<int(const Plan&, int)>& world_of) {
    stop_signals::outlive_readers();
    count_tensor_memory();
    const auto launch = launch_info(environment_of(launch_variables()));
    const int world = launch ? launch->size : 1;
    Plan plan;
    try {
        if (launch) check_is_one_job(*launch, std::nullopt);
        plan = load_plan(arguments.config, arguments.overrides, registered_names());
        if (adapt) adapt(plan);
        const int resolved_for = world_of ? world_of(plan, world) : world;
        plan = resolve_plan(std::move(plan), resolved_for);
        print_models_plainly();
    } catch (...) {
        return told_once(launch);
    }
    const std::string replaced = may_use_links(plan, launch) ? prepare_links() : "";
    at::Device device = at::kCPU;
    try {
        // The other ranks of the host go on to MPI's start and wait there.
        if (!launch || launch->local_rank == 0) trial_load(trial_files(plan), plan.model.trust_sha256);
        set_threads(plan);
        device = choose_device(plan, launch ? launch->local_rank : 0);
    } catch (...) {
        const Failure failure = current_failure();
        if (launch && launch->rank > 0) std::this_thread::sleep_for(kFirstRankSpeaks);
        say(failure.text);
        return failure.code;
    }
    return run_with_mpi(arguments.log_level, std::move(plan), launch, device, replaced, body);
}

void say_warnings(const Job& job, const Program& program, const Graph& graph) {
    if (!job.is_first()) return;
    for (const std::string& warning : graph.warnings) job.log->warn(warning);
    const bool has_links = transport_named(job.plan.mesh.transport).links == UsesLinks::Yes;
    const std::string no_links = has_links ? no_links_text(program) : "";
    if (!no_links.empty()) job.log->warn(no_links);
}

void guard_ranges(Datasets& data, const Graph& graph) {
    const std::vector<ValueRange> ranges = find_value_ranges(graph);
    if (data.training) data.training = with_ranges(std::move(data.training), ranges);
    if (data.validation) data.validation = with_ranges(std::move(data.validation), ranges);
}

}  // namespace vpp
