#include "graph/probe.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <utility>

#include "base/error.hpp"
#include "graph/autocast.hpp"
#include "graph/card_autocast.hpp"
#include "graph/flops.hpp"
#include "graph/ivalue_tensors.hpp"
#include "graph/jit_branches.hpp"
#include "graph/jit_inner_writes.hpp"
#include "graph/meta_kernels.hpp"
#include "graph/meta_memory.hpp"
#include "graph/torch_dtype.hpp"
#include "graph/weight_casts.hpp"

namespace vpp {

using torch::jit::Value;

namespace {

at::Tensor zero_input(const Field& field, int64_t microbatch_size, at::Device device) {
    return at::zeros(field.batch_shape(microbatch_size),
                     at::TensorOptions().dtype(to_torch(field.dtype)).device(device));
}

using MakeInput = std::function<at::Tensor(const ProbeInput& input)>;

/// The first samples of the data; zeros where there are none.
at::Tensor read_input(const ProbeInput& input, int64_t microbatch_size) {
    at::Tensor tensor = zero_input(input.field, microbatch_size, at::kCPU);
    if (!input.read) return tensor;
    input.read({static_cast<std::byte*>(tensor.mutable_data_ptr()), tensor.nbytes()});
    return tensor;
}

at::Tensor meta_copy(const at::Tensor& tensor) {
    at::Tensor meta = at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kMeta));
    return meta.set_requires_grad(tensor.requires_grad());
}

/// Sees what a branch or loop may do in place in another microbatch.
void watch_branch(const JitGraph& jit, int op, const ProbeResult& result, GradientWatch& watch) {
    const JitOp& branch = jit.ops[static_cast<size_t>(op)];
    const auto requires_grad = [&](const Value* used) {
        return std::ranges::any_of(tensors_in(result.values.at(used)), &at::Tensor::requires_grad);
    };
    const std::vector<Value*> used = values_used(branch.node);
    const bool takes_gradient = jit.modes.grad && branch.modes.grad && std::ranges::any_of(used, requires_grad);
    const std::vector<const Value*> written = outer_values_written(branch.node);
    for (const Value* value : used) {
        if (std::ranges::find(written, value) == written.end()) continue;
        watch.look_behind_branch(result.values.at(value), op, takes_gradient);
    }
}

/// Takes in what the ops made, and sees whether they changed in place what was there.
void watch_gradients(const JitGraph& jit, OpRange range, const ProbeResult& result, GradientWatch& watch) {
    for (int i = range.begin; i < range.end; ++i) {
        torch::jit::Node* node = jit.ops[static_cast<size_t>(i)].node;
        for (const Value* made : node->outputs()) watch.add(result.values.at(made));
        if (!may_write_inputs(node)) continue;
        if (follows_data(node)) watch_branch(jit, i, result, watch);
        for (const Value* used : values_used(node)) watch.look_again(result.values.at(used), i);
    }
}

/// What a graph's inputs and parameters hold at the start.
TrialValues given_values(const JitGraph& jit, const std::vector<ProbeInput>& inputs, const MakeInput& make_input,
                         const std::function<at::Tensor(size_t)>& weight, at::Device device) {
    TrialValues values;
    for (const ProbeInput& input : inputs) values[input.value] = make_input(input);
    for (size_t i = 0; i < jit.parameters.size(); ++i) {
        const JitParameter& parameter = jit.parameters[i];
        if (!parameter.value) continue;
        values[parameter.value] = device.is_meta() ? meta_copy(parameter.tensor) : weight(i);
    }
    return values;
}

/// Of the weights that are cast: one copy for all microbatches is no memory of one.
void add_casts(const JitGraph& jit, const TrialValues& values, WeightCasts& casts) {
    std::unordered_set<const Value*> weights;
    for (const JitParameter& parameter : jit.parameters) weights.insert(parameter.value);
    for (const JitOp& op : jit.ops) {
        for (size_t input : cast_inputs(jit, op)) {
            const Value* value = op.node->input(input);
            if (weights.contains(value)) casts.add(values.at(value).toTensor(), *op.modes.autocast);
        }
    }
    casts.refresh();
}

/// The shape of what the loss takes as input `index`, as it was before it was flattened.
std::vector<int64_t> compared_shape(const JitGraph& jit, size_t index, const TrialValues& values) {
    const Value* input = jit.loss->node()->input(index);
    if (jit.compared->as_rows) input = input->node()->input(0);
    const auto constant = torch::jit::toIValue(input);
    return (constant ? *constant : values.at(input)).toTensor().sizes().vec();
}

/// Whether values of one sample would be compared with another's: LibTorch lines shapes up at their ends.
/// Requires: neither is empty.
bool mixes_samples(const std::vector<int64_t>& output, const std::vector<int64_t>& target) {
    return output.size() != target.size() || output[0] != target[0];
}

void check_compared(const JitGraph& jit, const TrialValues& values) {
    const JitCompared& compared = *jit.compared;
    const std::vector<int64_t> output = compared_shape(jit, 0, values), target = compared_shape(jit, 1, values);
    const std::string kind = "loss.kind = \"" + compared.kind + "\" compares ";
    const std::string field = "the field '" + printable(compared.field) + "' " + shape_text(target);
    const bool is_over_classes = compared.shapes == ComparedShapes::Classes;
    if (output.empty()) {
        if (!is_over_classes && num_elements(target) == 1) return;  // one number with one number
        throw FailsAnywhere(ErrorKind::BadData,
                            kind + "what forward returns with " + field +
                                ", but that is a single number; if it is the loss, leave out [loss]");
    }
    const bool may_spread = compared.shapes == ComparedShapes::SameSamples && !mixes_samples(output, target);
    if (is_over_classes || output == target || may_spread) return;
    throw FailsAnywhere(ErrorKind::BadData,
                        kind + "value by value, but forward returns the shape " + shape_text(output) + " and " + field +
                            " has another, which mixes samples or values; give both one shape, as by "
                            "squeeze(-1), unsqueeze(-1) or expand_as in forward");
}

bool begins_loss(const JitGraph& jit, const JitOp& op) {
    if (!jit.compared) return false;
    const torch::jit::Node* loss = jit.loss->node();
    return op.node == (jit.compared->as_rows ? loss->input(0)->node() : loss);
}

ProbeResult probe_values(const JitGraph& jit, TrialValues given, const TrialPlaces& places) {
    ProbeResult result;
    result.values = std::move(given);
    GradientWatch watch;
    for (const auto& [value, content] : result.values) watch.add_given(content);
    const at::AutoGradMode grad(jit.modes.grad);
    OpTrial trial(jit, places);
    FlopCounter counter;
    result.flops.resize(jit.ops.size());
    for (int i = 0; i < static_cast<int>(jit.ops.size());) {
        if (begins_loss(jit, jit.ops[static_cast<size_t>(i)])) check_compared(jit, result.values);
        const OpRange range = trial.run(i, result.values);
        result.flops[static_cast<size_t>(i)] = counter.take();
        watch_gradients(jit, range, result, watch);
        i = range.end;
    }
    result.gradient_flips = watch.flips();
    return result;
}

ProbeResult probe_on_cpu(const JitGraph& jit, const std::vector<ProbeInput>& inputs, int64_t microbatch_size,
                         const std::function<at::Tensor(size_t)>& weight) {
    const auto first_samples = [&](const ProbeInput& input) { return read_input(input, microbatch_size); };
    TrialValues given = given_values(jit, inputs, first_samples, weight, at::kCPU);
    ProbeResult result = probe_values(jit, std::move(given), {at::kCPU, at::kCPU, at::kCPU});
    result.shapes_follow_data = true;
    return result;
}

/// Twice: with all values there, which says what they are, and with each until its last use.
ProbeResult probe_twice(const JitGraph& jit, const std::function<TrialValues()>& given, const TrialPlaces& places) {
    const auto with_casts = [&](const auto& walk) {
        TrialValues values = given();
        WeightCasts casts;
        add_casts(jit, values, casts);
        const WeightCasts::Scope sharing(casts);
        return walk(jit, std::move(values), places);
    };
    ProbeResult result = with_casts(probe_values);
    result.memory = with_casts(forward_memory);
    return result;
}

TrialValues given_on_meta(const JitGraph& jit, const std::vector<ProbeInput>& inputs, int64_t microbatch_size) {
    const auto zeros = [&](const ProbeInput& input) { return zero_input(input.field, microbatch_size, at::kMeta); };
    return given_values(jit, inputs, zeros, {}, at::kMeta);
}

/// Whether a random op gave numbers, which the meta device has none of: sizes may follow those.
bool draws_numbers(const JitGraph& jit, const ProbeResult& result) {
    return std::ranges::any_of(jit.ops, [&](const JitOp& op) {
        return op.random && std::ranges::any_of(op.node->outputs(), [&](const Value* made) {
                   const std::vector<at::Tensor> tensors = tensors_in(result.values.at(made));
                   return tensors.empty() || std::ranges::any_of(tensors, &at::Tensor::is_cpu);
               });
    });
}

/// None where an op fails there: where it looks at numbers. Those of what the model makes of nothing are there in the
/// second trial, in which ops that want all their tensors in one place may fail. Throws FailsAnywhere.
std::optional<ProbeResult> probe_on_meta(const JitGraph& jit, const std::vector<ProbeInput>& inputs,
                                         int64_t microbatch_size, at::Device target) {
    complete_meta_kernels();
    report_meta_memory();
    const auto given = [&] { return given_on_meta(jit, inputs, microbatch_size); };
    for (const at::Device factory : {at::kMeta, at::kCPU}) {
        try {
            ProbeResult result = probe_twice(jit, given, {at::kMeta, factory, target});
            result.shapes_follow_data = draws_numbers(jit, result);
            return result;
        } catch (const FailsAnywhere&) {
            throw;
        } catch (const Error&) {
            continue;
        }
    }
    return std::nullopt;
}

}  // namespace

ProbeResult probe(const JitGraph& jit, const std::vector<ProbeInput>& inputs, int64_t microbatch_size,
                  const std::function<at::Tensor(size_t)>& weight, at::Device device) {
    const auto on_cpu = [&] { return probe_on_cpu(jit, inputs, microbatch_size, weight); };
    const bool casts_on_cpu = jit.casts && device.is_cpu();
    std::optional<CardAutocastScope> as_on_cards(jit.modes.autocast);
    std::optional<ProbeResult> on_meta;
    try {
        on_meta = probe_on_meta(jit, inputs, microbatch_size, device);
    } catch (const FailsAnywhere&) {
        if (!casts_on_cpu) throw;  // else it may fail for what cards cast alone
    }
    if (!casts_on_cpu) return on_meta ? *std::move(on_meta) : on_cpu();
    as_on_cards.reset();
    // It leaves tensors of the meta device as they are, and what it casts is written down nowhere. What ops keep is
    // about what they keep on cards.
    const AutocastScope scope(at::kCPU, jit.modes.autocast);
    ProbeResult result = on_cpu();
    if (!on_meta) return result;
    result.memory = std::move(on_meta->memory);
    result.shapes_follow_data = on_meta->shapes_follow_data;
    return result;
}

bool shapes_fit(const JitGraph& jit, const std::vector<ProbeInput>& inputs, int64_t microbatch_size,
                at::Device device) {
    complete_meta_kernels();
    const CardAutocastScope as_on_cards(jit.modes.autocast);
    for (const at::Device factory : {at::kMeta, at::kCPU}) {
        try {
            probe_values(jit, given_on_meta(jit, inputs, microbatch_size), {at::kMeta, factory, device, false});
            return true;
        } catch (const Error&) {
            continue;
        }
    }
    return false;
}

std::vector<std::vector<const Value*>> values_in_one_memory(const ProbeResult& result,
                                                            const std::vector<Value*>& values) {
    std::vector<std::vector<const Value*>> groups;
    std::unordered_map<const c10::StorageImpl*, size_t> group_of;
    for (const Value* value : values) {
        for (const at::Tensor& tensor : tensors_in(result.values.at(value))) {
            if (!tensor.has_storage()) continue;
            const auto [known, is_new] = group_of.emplace(tensor.storage().unsafeGetStorageImpl(), groups.size());
            if (is_new) groups.emplace_back();
            std::vector<const Value*>& group = groups[known->second];
            if (group.empty() || group.back() != value) group.push_back(value);
        }
    }
    std::erase_if(groups, [](const auto& group) { return group.size() < 2; });
    return groups;
}

}  // namespace vpp
