#include "engine/verify.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "comm/collective.hpp"
#include "comm/in_process.hpp"

namespace vpp {

namespace {

// Values are compared in this order, so that the first difference named is nearest to its cause.
constexpr std::array<std::string_view, 6> kKinds{"loss", "norm", "gradient", "parameter", "buffer", "optimizer"};

std::string bits_text(double value) {
    char text[64];
    std::snprintf(text, sizeof text, "%.17g (%a)", value, value);
    return text;
}

Bytes digests_of(const std::vector<StateTensor>& tensors) {
    ByteWriter writer;
    for (const StateTensor& entry : tensors) {
        const at::Tensor plain = entry.tensor.contiguous();
        writer.put_text(entry.name);
        writer.put(hash_bytes({static_cast<const std::byte*>(plain.const_data_ptr()), plain.nbytes()}));
    }
    return writer.take();
}

std::map<std::string, std::string> record_step(Transport& transport, Engine& engine, const StepResult& result) {
    const std::vector<Bytes> all = gather(transport, digests_of(engine.tensors()));
    std::map<std::string, std::string> values;
    for (const Bytes& bytes : all) {
        ByteReader reader(bytes);
        while (!reader.empty()) {
            const std::string name = reader.get_text();
            values[name] = to_hex(reader.get<Digest>());
        }
    }
    for (size_t i = 0; i < result.microbatch_losses.size(); ++i) {
        values["loss of microbatch " + std::to_string(i)] = bits_text(result.microbatch_losses[i]);
    }
    values["norm of all gradients"] = bits_text(result.grad_norm);
    return values;
}

std::string value_or_absent(const std::map<std::string, std::string>& values, const std::string& name) {
    const auto found = values.find(name);
    return found == values.end() ? "absent" : found->second;
}

void compare_step(const std::map<std::string, std::string>& reference,
                  const std::map<std::string, std::string>& pipeline, VerifyResult& result) {
    std::map<std::string, std::string> names = reference;
    names.insert(pipeline.begin(), pipeline.end());
    for (std::string_view kind : kKinds) {
        for (const auto& [name, unused] : names) {
            if (!name.starts_with(kind)) continue;
            ++result.num_compared;
            const std::string expected = value_or_absent(reference, name), got = value_or_absent(pipeline, name);
            if (expected == got) continue;
            if (result.num_different++ == 0) result.difference = name + ": reference " + expected + ", pipeline " + got;
        }
    }
}

}  // namespace

RunRecord record_run(Engine& engine, int64_t steps, const AfterStep& after_step) {
    RunRecord record;
    for (int64_t step = 0; step < steps; ++step) {
        const StepResult result = engine.run_step(step);
        if (after_step) after_step(engine, step);
        record.steps.push_back(record_step(engine.transport(), engine, result));
    }
    return record;
}

VerifyResult compare_runs(const RunRecord& reference, const RunRecord& pipeline) {
    VerifyResult result;
    result.steps = static_cast<int64_t>(std::min(reference.steps.size(), pipeline.steps.size()));
    for (size_t step = 0; step < static_cast<size_t>(result.steps); ++step) {
        compare_step(reference.steps[step], pipeline.steps[step], result);
        if (result.num_different == 0) continue;
        result.different_step = static_cast<int64_t>(step) + 1;
        return result;
    }
    result.is_equal = result.steps > 0 && reference.steps.size() == pipeline.steps.size();
    return result;
}

RunRecord record_reference(const Plan& plan, const Program& program, const Datasets& data, int64_t steps,
                           const AfterStep& after_step) {
    const Program reference = reference_program(program);
    RunRecord record;
    InProcessWorld(InProcessOptions{}).run([&](Transport& transport) {
        Sources sources = open_sources(plan, reference);
        Engine engine(plan, reference, sources, data, transport);
        record = record_run(engine, steps, after_step);
    });
    return record;
}

}  // namespace vpp
