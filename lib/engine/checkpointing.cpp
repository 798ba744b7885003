#include "engine/checkpointing.hpp"

#include <ATen/ops/from_blob.h>

#include "base/error.hpp"
#include "comm/collective.hpp"
#include "engine/agreement.hpp"
#include "engine/initial_weights.hpp"
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

std::optional<CheckpointState> resume_checkpoint(Engine& engine, const Plan& plan, const Program& program,
                                                 const CheckpointStore& store, const Logger& log) {
    engine.transport().set_position("looking for a checkpoint");
    const std::string folder = agree_on_checkpoint(engine.transport(), [&] {
        std::string chosen = choose_checkpoint(plan, store, log);
        if (!chosen.empty()) {
            compare_facts(CheckpointReader(chosen).manifest().state, facts_of(plan, program), chosen, log);
        }
        return chosen;
    });
    if (folder.empty()) {
        load_initial_weights(engine, plan, program, log);
        return std::nullopt;
    }
    const CheckpointReader reader(folder);
    engine.load_state([&](const std::string& name, at::ScalarType dtype,
                          const std::vector<int64_t>& shape) -> std::optional<at::Tensor> {
        const bool required = name.starts_with("model.");
        if (!required && !reader.contains(name)) return std::nullopt;
        return as_tensor(reader.tensor(name, from_torch(dtype), shape));
    });
    const CheckpointState& state = reader.manifest().state;
    if (engine.transport().rank() == 0) {
        log->info("resumed after step " + std::to_string(state.step) + " from " + folder);
        if (!plan.model.init_from.empty()) log->info("model.init_from is for a first start, so nobody looked at it");
    }
    return state;
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
