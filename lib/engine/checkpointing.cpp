#include "engine/checkpointing.hpp"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "checkpoint/survey.hpp"
#include "comm/collective.hpp"
#include "device/repeated_elements.hpp"
#include "engine/agreement.hpp"
#include "engine/initial_weights.hpp"
#include "engine/job_checkpoint.hpp"
#include "engine/reading_time.hpp"
#include "engine/run_facts.hpp"
#include "graph/torch_dtype.hpp"

namespace vpp {

namespace fs = std::filesystem;

namespace {

at::Tensor as_tensor(const TensorBytes& bytes) {
    // Only read: the checkpoint's map is not writable.
    auto* data = const_cast<std::byte*>(bytes.bytes.data());
    return at::from_blob(data, bytes.shape, at::TensorOptions().dtype(to_torch(bytes.dtype)));
}

/// A run whose checkpoints are all lost is begun anew by a person, and not by the command that started it.
void refuse_to_begin_anew(const Plan& plan, const std::vector<std::string>& lost) {
    if (lost.empty()) return;
    const size_t others = lost.size() - 1;
    throw Error(ErrorKind::BadData,
                plan.run.dir + " has checkpoints, and none of them is whole: " + lost.front() +
                    (others > 0 ? " (and " + std::to_string(others) + " more, see the log)" : "") +
                    "; bring one back, or start anew with another run.dir or checkpoint.resume = \"no\"");
}

/// Rank 0's choice: "" for none.
std::string choose_checkpoint(const Plan& plan, const CheckpointStore& store, const Logger& log) {
    const std::string& resume = plan.checkpoint.resume;
    if (resume != "auto") {
        CheckpointReader(resume).verify();
        return resume;
    }
    std::vector<std::string> skipped;
    const auto newest = store.newest_verified(skipped);
    for (const std::string& reason : skipped) log->warn("checkpoint skipped: " + reason);
    if (!newest) refuse_to_begin_anew(plan, skipped);
    return newest ? newest->string() : "";
}

/// Evaluation may take another model file with the same parameters; only a person can know whether that is meant.
void say_differences(const CheckpointState& saved, const Plan& plan, const Program& program, const Logger& log) {
    std::map<std::string, std::string> now = facts_of(plan, program);
    now["model"] = to_hex(training_digest(plan, program.fields));
    for (const char* name : {"model", "data.transform", "data.val_split", "data.documents", "data.sequence_length",
                             "threads", "torch", "cpu_capability"}) {
        const auto before = fact_of(saved, name);
        if (!before || *before == now.at(name)) continue;
        log->warn(std::string("the checkpoint was made with another ") + name + " (" + printable(*before) + ", now " +
                  printable(now.at(name)) + ")");
    }
}

[[noreturn]] void refuse_without_checkpoint(const Plan& plan) {
    throw Error(ErrorKind::MissingInput,
                "there is no checkpoint in " + plan.run.dir +
                    "; train first, name one with --checkpoint, or evaluate the weights of the model file "
                    "itself with --initial-weights");
}

std::string choose_for_evaluation(const Plan& plan, const Program& program, const std::string& named,
                                  const Logger& log) {
    std::string folder = named;
    if (named.empty()) {
        std::vector<std::string> skipped;
        const auto newest = CheckpointStore(plan.run.dir).newest_verified(skipped);
        for (const std::string& reason : skipped) log->warn("checkpoint skipped: " + reason);
        if (!newest) refuse_without_checkpoint(plan);
        folder = newest->string();
    } else {
        CheckpointReader(named).verify();
    }
    say_differences(CheckpointReader(folder).manifest().state, plan, program, log);
    return folder;
}

/// The folder in which a named checkpoint lies.
fs::path parent_of(const std::string& named) {
    const fs::path plain = fs::absolute(named).lexically_normal();
    return (plain.has_filename() ? plain : plain.parent_path()).parent_path();
}

/// What the engine of this rank reads: asked for everything once. What it gets here, the values proper replace.
std::set<std::string> names_wanted_by(Engine& engine) {
    std::set<std::string> wanted;
    engine.load_state([&](const std::string& name, at::ScalarType dtype,
                          const std::vector<int64_t>& shape) -> std::optional<at::Tensor> {
        wanted.insert(name);
        if (!name.starts_with("model.")) return std::nullopt;
        return at::zeros(shape, at::TensorOptions().dtype(dtype));
    });
    return wanted;
}

/// An opened checkpoint, and its name for messages: that of rank 0.
struct Opened {
    std::string folder;
    CheckpointReader reader;
};

/// What a keeper reads to verify the checkpoint of that name, or the newest whole one where there is no name: where
/// that is not the first one that it reads, the others take the same time again.
uint64_t bytes_to_verify(const std::string& named, const CheckpointStore& store) {
    try {
        if (!named.empty()) return size_of_folder(named);
        uint64_t most = 0;
        for (const fs::path& checkpoint : store.list()) most = std::max(most, size_of_folder(checkpoint));
        return most;
    } catch (const Error&) {
        return 0;  // who opens it says why
    }
}

/// Where all ranks see one run folder, what lies in it is the whole checkpoint.
std::optional<Opened> open_shared(Engine& engine, const Plan& plan, const Program& program,
                                  const CheckpointStore& store, const Logger& log) {
    const std::string folder = from_first_rank(engine.transport(), [&] {
        std::string chosen = choose_checkpoint(plan, store, log);
        if (!chosen.empty()) {
            compare_facts(CheckpointReader(chosen).manifest().state, training_facts(plan, program, engine), chosen,
                          log);
        }
        return chosen;
    });
    if (folder.empty()) return std::nullopt;
    return Opened{folder, CheckpointReader(folder)};
}

/// Every keeper gives the chosen save its place, as far as its run folder has it.
void settle_chosen(const Transport& transport, const CheckpointStore& store, JobCheckpoint& chosen, const Logger& log) {
    const int64_t step = chosen.manifest.state.step;
    const bool is_keeper = chosen.parts.contains(transport.rank());
    if (is_keeper) {
        for (const fs::path& place : CheckpointStore(store).settle(step, chosen.manifest.save_id)) {
            log->warn("what was in the way of the checkpoint of step " + std::to_string(step) + " is now " +
                      place.string());
        }
    }
    for (auto& [keeper, part] : chosen.parts) part.folder = store.place_of(step);
}

/// Where they see several, each has a part.
std::optional<Opened> open_together(Engine& engine, const Plan& plan, const Program& program,
                                    const CheckpointStore& store, const RunFolders& folders, const Logger& log) {
    Transport& transport = engine.transport();
    const bool is_named = plan.checkpoint.resume != "auto";
    std::vector<std::string> lost;
    std::optional<JobCheckpoint> chosen = is_named ? find_named(transport, folders, plan.checkpoint.resume)
                                                   : find_newest(transport, folders, store, log, lost);
    if (!chosen) refuse_to_begin_anew(plan, lost);
    if (!chosen) return std::nullopt;
    const std::string folder = from_first_rank(transport, [&] {
        const std::string own = chosen->parts.at(0).folder.string();
        compare_facts(chosen->manifest.state, training_facts(plan, program, engine), own, log);
        return own;
    });
    if (!is_named) settle_chosen(transport, store, *chosen, log);
    return Opened{folder, bring_shards(transport, folders, *chosen, names_wanted_by(engine), log)};
}

std::optional<Opened> open_for_resume(Engine& engine, const Plan& plan, const Program& program,
                                      const CheckpointStore& store, const RunFolders& folders, const Logger& log) {
    if (folders.is_one()) return open_shared(engine, plan, program, store, log);
    return open_together(engine, plan, program, store, folders, log);
}

/// The same for the weights that a rank evaluates.
Opened open_for_evaluation(const Plan& plan, const Program& program, Transport& transport, const std::string& named,
                           const RunFolders& folders, const std::set<std::string>& wanted, const Logger& log) {
    if (folders.is_one()) {
        const std::string folder =
            from_first_rank(transport, [&] { return choose_for_evaluation(plan, program, named, log); });
        return {folder, CheckpointReader(folder)};
    }
    const CheckpointStore store(plan.run.dir);
    std::vector<std::string> lost;
    std::optional<JobCheckpoint> chosen =
        named.empty() ? find_newest(transport, folders, store, log, lost) : find_named(transport, folders, named);
    if (!chosen) refuse_without_checkpoint(plan);
    if (transport.rank() == 0) say_differences(chosen->manifest.state, plan, program, log);
    const std::string folder = chosen->parts.at(0).folder.string();
    return {folder, bring_shards(transport, folders, *chosen, wanted, log)};
}

}  // namespace

std::optional<CheckpointState> resume_checkpoint(Engine& engine, const Plan& plan, const Program& program,
                                                 const CheckpointStore& store, const Logger& log,
                                                 const RunFolders& run_folders) {
    Transport& transport = engine.transport();
    const std::string& resume = plan.checkpoint.resume;
    if (resume == "no") {
        load_initial_weights(engine, plan, program, log);
        return std::nullopt;
    }
    transport.set_position("looking for a checkpoint");
    const bool is_named = resume != "auto";
    const RunFolders folders = is_named ? RunFolders::find(transport, parent_of(resume)) : run_folders;
    ReadingTime time(transport, folders.keeps(transport.rank()) ? bytes_to_verify(is_named ? resume : "", store) : 0);
    const std::optional<Opened> opened = open_for_resume(engine, plan, program, store, folders, log);
    if (!opened) {
        load_initial_weights(engine, plan, program, log);
        return std::nullopt;
    }
    const CheckpointReader& reader = opened->reader;
    engine.load_state([&](const std::string& name, at::ScalarType dtype,
                          const std::vector<int64_t>& shape) -> std::optional<at::Tensor> {
        const bool required = name.starts_with("model.");
        if (!required && !reader.contains(name)) return std::nullopt;
        return as_tensor(reader.tensor(name, from_torch(dtype), shape));
    });
    time.wait_for_all();
    const CheckpointState& state = reader.manifest().state;
    if (transport.rank() == 0) {
        log->info("resumed after step " + std::to_string(state.step) + " from " + opened->folder);
        if (!plan.model.init_from.empty()) log->info("model.init_from is for a first start, so nobody looked at it");
    }
    return state;
}

EvaluatedCheckpoint load_weights(const Weights& weights, const Plan& plan, const Program& program, Transport& transport,
                                 const std::string& named, const Logger& log) {
    transport.set_position("looking for a checkpoint");
    std::set<std::string> wanted;
    for (int parameter : weights.held()) {
        wanted.insert("model." + program.evaluation->graph.parameters[static_cast<size_t>(parameter)].name);
    }
    const RunFolders folders = RunFolders::find(transport, named.empty() ? fs::path(plan.run.dir) : parent_of(named));
    const bool reads_all = folders.keeps(transport.rank());
    ReadingTime time(transport, reads_all ? bytes_to_verify(named, CheckpointStore(plan.run.dir)) : 0);
    const Opened opened = open_for_evaluation(plan, program, transport, named, folders, wanted, log);
    const CheckpointReader& reader = opened.reader;
    for (int parameter : weights.held()) {
        const GraphParameter& entry = program.evaluation->graph.parameters[static_cast<size_t>(parameter)];
        const at::Tensor tensor = weights.at(parameter).detach();
        const DType dtype = from_torch(tensor.scalar_type());
        take_values(tensor, as_tensor(reader.tensor("model." + entry.name, dtype, tensor.sizes().vec())), entry.name);
    }
    time.wait_for_all();
    return {opened.folder, reader.manifest().state.step};
}

}  // namespace vpp
