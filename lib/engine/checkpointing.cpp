#include "engine/checkpointing.hpp"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <random>

#include "base/error.hpp"
#include "comm/collective.hpp"
#include "engine/agreement.hpp"
#include "graph/torch_dtype.hpp"

namespace vpp {

namespace fs = std::filesystem;

namespace {

/// Facts whose change makes a resumed run another run; the rest is said.
constexpr std::array<std::string_view, 7> kRefused{"model", "data",      "global_batch_size", "num_microbatches",
                                                   "seed",  "precision", "optimizer"};

std::string values_text(const OptimizerValues& values) {
    const nlohmann::json list{values.lr,       values.weight_decay, values.beta1,    values.beta2,  values.eps,
                              values.momentum, values.dampening,    values.nesterov, values.amsgrad};
    return list.dump();
}

/// All numbers of the update rule: they may change between runs, and the change is said.
std::string optimizer_text(const OptimizerPlan& optimizer) {
    nlohmann::json text{values_text(optimizer.values), optimizer.clip_norm};
    for (const OptimizerGroup& group : optimizer.groups) text.push_back({group.match, values_text(group.values)});
    return text.dump();
}

std::string lr_schedule_text(const LrSchedulePlan& schedule) {
    return nlohmann::json{schedule.kind, schedule.warmup_steps, schedule.min_lr, schedule.decay_steps, schedule.gamma}
        .dump();
}

std::map<std::string, std::string> facts_of(const Plan& plan, const Program& program) {
    const NumericEnvironment environment = numeric_environment(plan);
    return {{"model", to_hex(program.training.graph.digest)},
            {"data", program.data_digest},
            {"global_batch_size", std::to_string(*plan.train.global_batch_size)},
            {"num_microbatches", std::to_string(*plan.pipeline.num_microbatches)},
            {"seed", std::to_string(plan.train.seed)},
            {"precision", plan.train.precision},
            {"optimizer", plan.optimizer.kind},
            {"optimizer values", optimizer_text(plan.optimizer)},
            {"learning rate schedule", lr_schedule_text(plan.lr_schedule)},
            {"threads", std::to_string(environment.threads)},
            {"dp", std::to_string(program.mesh.dp)},
            {"tied_gradients", plan.pipeline.tied_gradients},
            {"deferred_batch_norm", plan.pipeline.deferred_batch_norm ? "true" : "false"},
            {"torch", environment.torch_version},
            {"cpu_capability", environment.cpu_capability},
            {"device", "cpu"}};
}

/// A name for a save that no earlier save of this folder has.
std::string new_save_id() {
    std::random_device device;
    return to_hex({(uint64_t{device()} << 32) | device(), (uint64_t{device()} << 32) | device()});
}

/// Runs a part of a save unless there was a problem before; a failing disk is one.
void attempt(std::string& problem, const std::function<void()>& part) {
    if (!problem.empty()) return;
    try {
        part();
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::Io) throw;
        problem = error.what();
    }
}

/// Rank 0's texts on every rank.
void share(Transport& transport, const std::vector<std::string*>& texts) {
    ByteWriter writer;
    for (const std::string* text : texts) writer.put_text(*text);
    const Bytes bytes = broadcast(transport, writer.take());
    ByteReader reader(bytes);
    for (std::string* text : texts) *text = reader.get_text();
}

Bytes record_bytes(const ShardRecord& record, const std::string& problem) {
    ByteWriter writer;
    writer.put_text(problem);
    writer.put_text(record.file);
    writer.put(record.size_bytes);
    writer.put(record.digest);
    return writer.take();
}

/// The first problem is kept.
ShardRecord record_from(const Bytes& bytes, std::string& problem) {
    ByteReader reader(bytes);
    const std::string other = reader.get_text();
    if (problem.empty()) problem = other;
    ShardRecord record;
    record.file = reader.get_text();
    record.size_bytes = reader.get<uint64_t>();
    record.digest = reader.get<Digest>();
    return record;
}

CheckpointState state_of(const Plan& plan, const Program& program, int64_t step) {
    CheckpointState state;
    state.step = step;
    state.samples = step * *plan.train.global_batch_size;
    state.seed = plan.train.seed;
    state.plan = plan.resolved_text;
    state.facts = facts_of(plan, program);
    return state;
}

ShardRecord write_own_shard(Engine& engine, CheckpointStore& store, int64_t step, const std::string& save_id) {
    std::vector<at::Tensor> contiguous;  // keeps the bytes alive
    std::vector<TensorBytes> tensors;
    for (const StateTensor& entry : engine.state()) {
        contiguous.push_back(entry.tensor.contiguous());
        const at::Tensor& tensor = contiguous.back();
        tensors.push_back({entry.name,
                           from_torch(tensor.scalar_type()),
                           tensor.sizes().vec(),
                           {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()}});
    }
    return store.write_shard(step, save_id, engine.transport().rank(), tensors);
}

at::Tensor as_tensor(const TensorBytes& bytes) {
    // Only read: the checkpoint's map is not writable.
    auto* data = const_cast<std::byte*>(bytes.bytes.data());
    return at::from_blob(data, bytes.shape, at::TensorOptions().dtype(to_torch(bytes.dtype)));
}

void compare_facts(const CheckpointState& saved, const std::map<std::string, std::string>& now, const fs::path& folder,
                   const Logger& log) {
    std::vector<Problem> problems;
    for (const auto& [name, value] : now) {
        const auto before = saved.facts.find(name);
        if (before == saved.facts.end() || before->second == value) continue;
        const std::string change = name + " was " + before->second + ", now " + value;
        if (std::find(kRefused.begin(), kRefused.end(), name) != kRefused.end()) {
            problems.push_back({folder.string() + " belongs to another run: " + change +
                                    "; set it back, or start anew with another run.dir or checkpoint.resume = \"no\"",
                                std::nullopt});
        } else {
            log->warn("resumed with other settings, so other bits are possible: " + change);
        }
    }
    if (!problems.empty()) throw Error(ErrorKind::Refused, std::move(problems));
}

/// Rank 0's choice: "" for none.
std::string choose_checkpoint(const Plan& plan, const CheckpointStore& store, const Logger& log) {
    const std::string& resume = plan.checkpoint.resume;
    if (resume == "no") return "";
    if (resume != "auto") {
        CheckpointReader(resume).verify();
        return resume;
    }
    std::vector<std::string> skipped;
    const auto newest = store.newest_verified(skipped);
    for (const std::string& reason : skipped) log->warn("checkpoint skipped: " + reason);
    return newest ? newest->string() : "";
}

/// Rank 0 decides or fails for all.
std::string agree_on_checkpoint(Transport& transport, const std::function<std::string()>& choose) {
    ByteWriter writer;
    if (transport.rank() == 0) {
        try {
            const std::string folder = choose();
            writer.put(0);
            writer.put_text(folder);
        } catch (const Error& error) {
            writer = ByteWriter();
            writer.put(exit_code(error.kind()));
            writer.put_text(error.what());
        }
    }
    const Bytes bytes = broadcast(transport, writer.take());
    ByteReader reader(bytes);
    const auto code = reader.get<int>();
    std::string text = reader.get_text();
    if (code != 0) throw Error(static_cast<ErrorKind>(code), text);
    return text;
}

/// Evaluation may take another model file with the same parameters; only a person can know whether that is meant.
void say_differences(const CheckpointState& saved, const Plan& plan, const Program& program, const Logger& log) {
    const NumericEnvironment environment = numeric_environment(plan);
    const std::map<std::string, std::string> now{{"model", to_hex(training_digest(plan, program.fields))},
                                                 {"threads", std::to_string(environment.threads)},
                                                 {"torch", environment.torch_version},
                                                 {"cpu_capability", environment.cpu_capability}};
    for (const auto& [name, value] : now) {
        const auto before = saved.facts.find(name);
        if (before == saved.facts.end() || before->second == value) continue;
        log->warn("the checkpoint was made with another " + name + " (" + before->second + ", now " + value + ")");
    }
}

std::string choose_for_evaluation(const Plan& plan, const Program& program, const std::string& named,
                                  const Logger& log) {
    std::string folder = named;
    if (named.empty()) {
        std::vector<std::string> skipped;
        const auto newest = CheckpointStore(plan.run.dir).newest_verified(skipped);
        for (const std::string& reason : skipped) log->warn("checkpoint skipped: " + reason);
        if (!newest) {
            throw Error(ErrorKind::MissingInput,
                        "there is no checkpoint in " + plan.run.dir +
                            "; train first, name one with --checkpoint, or evaluate the weights of the model file "
                            "itself with --initial-weights");
        }
        folder = newest->string();
    } else {
        CheckpointReader(named).verify();
    }
    say_differences(CheckpointReader(folder).manifest().state, plan, program, log);
    return folder;
}

}  // namespace

SaveResult save_checkpoint(Engine& engine, const Plan& plan, const Program& program, CheckpointStore& store,
                           int64_t step) {
    Transport& transport = engine.transport();
    transport.set_position("saving step " + std::to_string(step));
    const bool is_first = transport.rank() == 0;
    SaveResult result;
    std::string save_id;
    if (is_first) {
        save_id = new_save_id();
        attempt(result.problem, [&] { store.begin(step, save_id); });
    }
    share(transport, {&save_id, &result.problem});
    if (!result.problem.empty()) return result;

    ShardRecord own;
    attempt(result.problem, [&] { own = write_own_shard(engine, store, step, save_id); });
    std::vector<ShardRecord> records;
    for (const Bytes& bytes : gather(transport, record_bytes(own, result.problem))) {
        records.push_back(record_from(bytes, result.problem));
    }
    if (is_first) {
        attempt(result.problem,
                [&] { result.folder = store.commit(save_id, state_of(plan, program, step), std::move(records)); });
        if (!result.problem.empty()) store.abandon(step, save_id);
        attempt(result.note, [&] { store.prune(plan.checkpoint.keep, plan.checkpoint.keep_every); });
    }
    std::string folder = result.folder.string();
    share(transport, {&folder, &result.problem, &result.note});
    result.folder = folder;
    return result;
}

std::optional<int64_t> resume_checkpoint(Engine& engine, const Plan& plan, const Program& program,
                                         const CheckpointStore& store, const Logger& log) {
    engine.transport().set_position("looking for a checkpoint");
    const std::string folder = agree_on_checkpoint(engine.transport(), [&] {
        std::string chosen = choose_checkpoint(plan, store, log);
        if (!chosen.empty()) {
            compare_facts(CheckpointReader(chosen).manifest().state, facts_of(plan, program), chosen, log);
        }
        return chosen;
    });
    if (folder.empty()) return std::nullopt;
    const CheckpointReader reader(folder);
    engine.load_state([&](const std::string& name, at::ScalarType dtype,
                          const std::vector<int64_t>& shape) -> std::optional<at::Tensor> {
        const bool required = name.starts_with("model.");
        if (!required && !reader.contains(name)) return std::nullopt;
        return as_tensor(reader.tensor(name, from_torch(dtype), shape));
    });
    const int64_t step = reader.manifest().state.step;
    if (engine.transport().rank() == 0) log->info("resumed after step " + std::to_string(step) + " from " + folder);
    return step;
}

EvaluatedCheckpoint load_weights(const Weights& weights, const Plan& plan, const Program& program, Transport& transport,
                                 const std::string& named, const Logger& log) {
    transport.set_position("looking for a checkpoint");
    const std::string folder =
        agree_on_checkpoint(transport, [&] { return choose_for_evaluation(plan, program, named, log); });
    const CheckpointReader reader(folder);
    for (int parameter : weights.held()) {
        const GraphParameter& entry = program.evaluation->graph.parameters[static_cast<size_t>(parameter)];
        at::Tensor tensor = weights.at(parameter).detach();
        tensor.copy_(
            as_tensor(reader.tensor("model." + entry.name, from_torch(tensor.scalar_type()), tensor.sizes().vec())));
    }
    return {folder, reader.manifest().state.step};
}

}  // namespace vpp
