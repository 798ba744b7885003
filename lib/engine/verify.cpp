#include "engine/verify.hpp"

#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>

#include "base/dtype.hpp"
#include "base/error.hpp"
#include "comm/collective.hpp"
#include "comm/in_process.hpp"
#include "engine/initial_weights.hpp"
#include "graph/torch_dtype.hpp"

namespace vpp {

namespace {

// Values are compared in this order, so that the first difference named is nearest to its cause.
constexpr const char* kScaleName = "loss scale";
constexpr const char* kNormName = "norm of all gradients";
constexpr std::array<std::string_view, 8> kKinds{"loss",      "gradient", "norm",      kSkipped,
                                                 "parameter", "buffer",   "optimizer", "evaluation"};

/// One step of one rank: digests as they are taken, and what is watched.
class StepRecorder {
  public:
    explicit StepRecorder(StepWatch* watch) : watch_(watch) {}

    void add(const StateTensor& entry) {
        const at::Tensor plain = entry.tensor.cpu().contiguous();
        writer_.put_text(entry.name);
        writer_.put_text(std::string(name_of(from_torch(plain.scalar_type()))) + shape_text(plain.sizes().vec()));
        writer_.put(hash_bytes({static_cast<const std::byte*>(plain.const_data_ptr()), plain.nbytes()}));
        look_at(entry.name, entry.tensor);
    }

    void look_at(const std::string& name, const at::Tensor& tensor) {
        if (watch_ && watch_->name == name)
            watch_->found = tensor.detach().to(at::kCPU, /*non_blocking=*/false, /*copy=*/true);
    }

    /// A number that all ranks have.
    void put(StepRecord& record, const std::string& name, double value) {
        record[name] = exact_text(value);
        look_at(name, at::scalar_tensor(value, at::kDouble));
    }

    /// Everything that the ranks added, on rank 0. Replicas have the same values: where one differs, what is recorded
    /// is like no value of a reference.
    StepRecord gather_all(Transport& transport) {
        StepRecord record;
        for (const Bytes& bytes : gather(transport, writer_.take())) {
            ByteReader reader(bytes);
            while (!reader.empty()) {
                const std::string name = reader.get_text();
                const std::string form = reader.get_text();
                const std::string value = to_hex(reader.get<Digest>()) + " " + form;
                const auto [known, is_new] = record.emplace(name, value);
                if (!is_new && known->second != value) known->second += ", and of another replica " + value;
            }
        }
        return record;
    }

  private:
    StepWatch* watch_;
    ByteWriter writer_;
};

std::string value_or_absent(const StepRecord& values, const std::string& name) {
    const auto found = values.find(name);
    return found == values.end() ? "absent" : found->second;
}

void compare_step(const StepRecord& reference, const StepRecord& pipeline, VerifyResult& result) {
    StepRecord names = reference;
    names.insert(pipeline.begin(), pipeline.end());
    const int64_t before = result.num_compared;
    for (std::string_view kind : kKinds) {
        for (const auto& [name, unused] : names) {
            if (!name.starts_with(kind)) continue;
            ++result.num_compared;
            ++result.by_kind[std::string(kind)];
            const std::string expected = value_or_absent(reference, name), got = value_or_absent(pipeline, name);
            if (expected == got) continue;
            if (result.num_different++ > 0) continue;
            result.different_name = name;
            result.difference = name + ": reference " + expected + ", pipeline " + got;
        }
    }
    check(result.num_compared - before == static_cast<int64_t>(names.size()),
          "every value has a kind that is compared");
}

}  // namespace

std::string exact_text(double value) {
    char text[64];
    if (std::isnan(value)) {
        std::snprintf(text, sizeof text, "nan (0x%016llx)",
                      static_cast<unsigned long long>(std::bit_cast<uint64_t>(value)));
    } else {
        std::snprintf(text, sizeof text, "%.17g (%a)", value, value);
    }
    return text;
}

StepRecord record_step(Engine& engine, int64_t step, const AfterStep& after_step, StepWatch* watch) {
    StepRecorder recorder(watch);
    const StepResult result = engine.run_step(step, [&] {
        for (const StateTensor& entry : engine.tensors()) {
            if (entry.name.starts_with("gradient")) recorder.add(entry);
        }
    });
    if (after_step) after_step(engine, step);
    for (const StateTensor& entry : engine.tensors()) {
        if (!entry.name.starts_with("gradient")) recorder.add(entry);
    }
    StepRecord record = recorder.gather_all(engine.transport());
    for (size_t i = 0; i < result.microbatch_losses.size(); ++i) {
        recorder.put(record, "loss of microbatch " + std::to_string(i), result.microbatch_losses[i]);
    }
    if (result.loss_scale) recorder.put(record, kScaleName, *result.loss_scale);
    record[kNormName] = exact_text(result.grad_norm);
    if (!result.updated) record[kSkipped] = "no update";
    if (result.totals.grad_norm.defined()) recorder.look_at(kNormName, result.totals.grad_norm);
    return record;
}

void record_evaluation(Engine& engine, StepRecord& record, StepWatch* watch) {
    const EvaluationResult result = engine.evaluate();
    StepRecorder recorder(watch);
    recorder.put(record, "evaluation loss", result.loss);
    recorder.put(record, "evaluation samples", static_cast<double>(result.samples));
    if (result.accuracy) recorder.put(record, "evaluation accuracy", *result.accuracy);
}

RunRecord record_run(Engine& engine, int64_t steps, const AfterStep& after_step) {
    RunRecord record;
    for (int64_t step = 0; step < steps; ++step) record.steps.push_back(record_step(engine, step, after_step));
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
    result.is_through_host = result.steps > 0 && pipeline.through_host == static_cast<int64_t>(pipeline.steps.size());
    result.is_equal = result.steps > 0 && reference.steps.size() == pipeline.steps.size();
    return result;
}

void with_reference(const Plan& plan, const Program& program, const Datasets& data,
                    const std::function<void(Engine& engine, Program& reference)>& body, at::Device device) {
    Program reference = reference_program(program);
    Plan by_op = plan;
    by_op.pipeline.cuda_graphs = false;
    InProcessWorld(InProcessOptions{}).run([&](Transport& transport) {
        Sources sources = open_sources(plan, reference, device);
        Engine engine(by_op, reference, sources, data, transport);
        load_initial_weights(engine, plan, reference);
        body(engine, reference);
    });
}

}  // namespace vpp
