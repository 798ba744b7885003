#include "graph/probe.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/alias.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/zeros.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <unordered_set>

#include "base/error.hpp"
#include "graph/autocast.hpp"
#include "graph/card_autocast.hpp"
#include "graph/ivalue_tensors.hpp"
#include "graph/jit_branches.hpp"
#include "graph/jit_containers.hpp"
#include "graph/jit_executable.hpp"
#include "graph/meta_forms.hpp"
#include "graph/meta_kernels.hpp"
#include "graph/meta_layouts.hpp"
#include "graph/meta_memory.hpp"
#include "graph/op_names.hpp"
#include "graph/slow_trial.hpp"
#include "graph/torch_dtype.hpp"
#include "graph/torch_errors.hpp"
#include "graph/weight_casts.hpp"

namespace vpp {

using torch::jit::Value;

namespace {

at::Tensor zero_input(const Field& field, int64_t microbatch_size, at::Device device) {
    return at::zeros(field.batch_shape(microbatch_size),
                     at::TensorOptions().dtype(to_torch(field.dtype)).device(device));
}

using MakeInput = std::function<at::Tensor(const ProbeInput& input)>;

/// Samples of the data from `first` on; zeros where there are none.
at::Tensor read_input(const ProbeInput& input, int64_t first, int64_t microbatch_size) {
    at::Tensor tensor = zero_input(input.field, microbatch_size, at::kCPU);
    if (!input.read) return tensor;
    input.read(first, {static_cast<std::byte*>(tensor.mutable_data_ptr()), tensor.nbytes()});
    return tensor;
}

at::Tensor meta_copy(const at::Tensor& tensor) {
    at::Tensor meta = at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kMeta));
    return meta.set_requires_grad(tensor.requires_grad());
}

/// The range of a guard of the model's own must be run as one piece: the object lives on the interpreter's stack.
int end_of_guard(const JitGraph& jit, int begin) {
    int depth = 0;
    for (int i = begin; i < static_cast<int>(jit.ops.size()); ++i) {
        const auto kind = jit.ops[static_cast<size_t>(i)].node->kind();
        if (kind == torch::jit::prim::Enter) ++depth;
        if (kind == torch::jit::prim::Exit && --depth == 0) return i + 1;
    }
    check(false, "every Enter has its Exit");
    return 0;
}

std::vector<c10::IValue> inputs_of(const torch::jit::Node* node, const ProbeResult& result) {
    std::vector<c10::IValue> inputs;
    for (const Value* input : node->inputs()) {
        const auto constant = torch::jit::toIValue(input);
        inputs.push_back(constant ? *constant : result.values.at(input));
    }
    return inputs;
}

/// Runs an op that has a form of its own on the meta device: that of `target`. Gives whether it has one.
bool run_meta_form(const JitGraph& jit, int index, at::Device target, ProbeResult& result) {
    const JitOp& op = jit.ops[static_cast<size_t>(index)];
    const torch::jit::Node* node = op.node;
    const MetaForm form = find_meta_form(node->kind().toQualString());
    if (!form) return false;
    std::vector<c10::IValue> inputs = inputs_of(node, result);
    const at::AutoGradMode grad(op.modes.grad);
    if (op.modes.autocast) cast_as_on_cards(c10::toString(node->schema().operator_name()), inputs);
    result.values[node->output()] = form(inputs, target);
    return true;
}

/// Lays the output of an op that ran on the meta device out as `target` does.
void lay_out_as_on(at::Device target, const JitOp& op, ProbeResult& result) {
    const MetaLayout layout = find_meta_layout(op.node->kind().toQualString());
    if (!layout) return;
    const at::AutoGradMode grad(op.modes.grad);
    const std::optional<at::MemoryFormat> format = layout(inputs_of(op.node, result), target);
    c10::IValue& output = result.values.at(op.node->output());
    if (format) output = output.toTensor().clone(*format);
}

/// Where a model is followed.
struct Places {
    at::Device device;   ///< its inputs and weights
    at::Device factory;  ///< what it makes of nothing: masks, positions
    at::Device target;   ///< where it will run
};

/// Runs ops as one piece; the values made inside are all kept.
void run_range(const JitGraph& jit, OpRange range, at::Device factory, ProbeResult& result) {
    std::vector<Value*> inputs, outputs;
    std::unordered_set<const Value*> known;
    for (int i = range.begin; i < range.end; ++i) {
        torch::jit::Node* node = jit.ops[static_cast<size_t>(i)].node;
        for (Value* used : values_used(node)) {
            if (known.insert(used).second) inputs.push_back(used);
        }
        for (Value* made : node->outputs()) {
            known.insert(made);
            outputs.push_back(made);
        }
    }
    std::vector<c10::IValue> arguments;
    for (const Value* input : inputs) arguments.push_back(result.values.at(input));
    std::vector<c10::IValue> results = compile_ops(jit, range, inputs, outputs, factory)->run(std::move(arguments), 0);
    for (size_t i = 0; i < outputs.size(); ++i) result.values[outputs[i]] = std::move(results[i]);
}

/// A tensor over the same memory that needs a gradient, by a history that is never followed.
at::Tensor with_gradient(const at::Tensor& tensor) {
    const auto history = std::make_shared<torch::autograd::UndefinedGrad>();
    at::Tensor copy = tensor.detach();
    torch::autograd::impl::set_gradient_edge(copy, {history, history->add_input_metadata(copy)});
    return copy;
}

/// Whether its schema says that it writes; control flow may do anything.
bool may_write_inputs(const torch::jit::Node* node) {
    const c10::FunctionSchema* schema = node->maybeSchema();
    return !schema || schema->is_mutable() || !node->blocks().empty();
}

bool needs_gradient(const c10::IValue& content) {
    return std::ranges::any_of(tensors_in(content), [](const at::Tensor& tensor) { return tensor.requires_grad(); });
}

/// Lists and dicts that are changed as the data have it: of what was in them, or was put into them, something else is
/// there behind it in another microbatch.
class ChangedContainers {
  public:
    /// To be told of an op before it runs.
    void add(const JitOp& op, const ProbeResult& result) {
        if (!may_write_inputs(op.node)) return;
        const std::vector<Value*> used = values_used(op.node);
        const auto content = [&](const Value* value) -> const c10::IValue& { return result.values.at(value); };
        if (std::ranges::none_of(used, needs_gradient, content)) return;
        for (const Value* value : used) {
            if (is_container(value) && may_hold_others(value)) with_gradient_.push_back(content(value));
        }
    }

    /// Whether something in it may need a gradient, though now nothing may.
    bool may_need_gradient(const c10::IValue& container) const {
        return std::ranges::any_of(with_gradient_, [&](const c10::IValue& changed) { return changed.is(container); });
    }

  private:
    std::vector<c10::IValue> with_gradient_;
};

/// What comes out of control flow, or of a list that it changes, is a tensor of its own, though this time it may be
/// one that went in or came out before; and it may need a gradient if anything that went in does, though the way that
/// was taken gave none. So may what is made of such a list.
void tell_apart(const JitGraph& jit, const JitOp& op, const ChangedContainers& changed, ProbeResult& result) {
    const bool may_be_others = may_give_others(op.node);
    std::unordered_set<const void*> known;
    bool may_need_gradient = false;
    for (const Value* used : values_used(op.node)) {
        const c10::IValue& content = result.values.at(used);
        may_need_gradient = may_need_gradient || changed.may_need_gradient(content);
        if (!may_be_others) continue;
        may_need_gradient = may_need_gradient || needs_gradient(content);
        for (const at::Tensor& tensor : tensors_in(content)) known.insert(tensor.unsafeGetTensorImpl());
    }
    may_need_gradient = may_need_gradient && jit.modes.grad && op.modes.grad;
    if (!may_be_others && !may_need_gradient) return;
    for (const Value* made : op.node->outputs()) {
        c10::IValue& content = result.values.at(made);
        if (!content.isTensor() || !content.toTensor().defined()) continue;
        const at::Tensor tensor = content.toTensor();
        const bool differentiable = tensor.is_floating_point() || tensor.is_complex();
        const bool is_known = !known.insert(tensor.unsafeGetTensorImpl()).second;
        if (may_need_gradient && differentiable && !tensor.requires_grad()) {
            content = with_gradient(tensor);
        } else if (is_known) {
            content = at::alias(tensor);
        }
    }
}

/// Takes in what the ops made, and sees whether they changed in place what was there.
void watch_gradients(const JitGraph& jit, OpRange range, const ProbeResult& result, GradientWatch& watch) {
    for (int i = range.begin; i < range.end; ++i) {
        torch::jit::Node* node = jit.ops[static_cast<size_t>(i)].node;
        for (const Value* made : node->outputs()) watch.add(result.values.at(made));
        if (!may_write_inputs(node)) continue;
        for (const Value* used : values_used(node)) watch.look_again(result.values.at(used), i);
    }
}

/// Of the weights that are cast: one copy for all microbatches is no memory of one.
void add_casts(const JitGraph& jit, const ProbeResult& result, WeightCasts& casts) {
    std::unordered_set<const Value*> weights;
    for (const JitParameter& parameter : jit.parameters) weights.insert(parameter.value);
    for (const JitOp& op : jit.ops) {
        for (size_t input : cast_inputs(jit, op)) {
            const Value* value = op.node->input(input);
            if (weights.contains(value)) casts.add(result.values.at(value).toTensor(), *op.modes.autocast);
        }
    }
    casts.refresh();
}

ProbeResult probe_on(const JitGraph& jit, const std::vector<ProbeInput>& inputs, const MakeInput& make_input,
                     const std::function<at::Tensor(size_t)>& weight, const Places& places) {
    ProbeResult result;
    result.on_meta = places.device.is_meta();
    for (const ProbeInput& input : inputs) result.values[input.value] = make_input(input);
    for (size_t i = 0; i < jit.parameters.size(); ++i) {
        const JitParameter& parameter = jit.parameters[i];
        if (parameter.value) {
            result.values[parameter.value] = result.on_meta ? meta_copy(parameter.tensor) : weight(i);
        }
    }
    WeightCasts casts;
    if (result.on_meta) add_casts(jit, result, casts);
    const WeightCasts::Scope sharing(casts);
    const auto memory = std::make_shared<MetaMemory>();
    std::optional<c10::DebugInfoGuard> watching;
    if (result.on_meta) watching.emplace(c10::DebugInfoKind::PROFILER_STATE, memory);
    GradientWatch watch;
    ChangedContainers changed;
    for (const auto& [value, content] : result.values) watch.add(content);
    const at::AutoGradMode grad(jit.modes.grad);
    const int num_ops = static_cast<int>(jit.ops.size());
    if (result.on_meta) result.kept_bytes.resize(jit.ops.size());
    SlowTrial trial([&](int op) { return op_text(jit, jit.ops[static_cast<size_t>(op)].node); });
    for (int i = 0; i < num_ops;) {
        const int64_t bytes_before = memory->alive_bytes();
        const JitOp& op = jit.ops[static_cast<size_t>(i)];
        // The object made for a guard comes right before its Enter and cannot leave the interpreter.
        const bool guard = op.node->kind() == torch::jit::prim::Enter;
        const int end = guard ? end_of_guard(jit, i) : i + 1;
        changed.add(op, result);
        trial.begin(i);
        try {
            const bool has_form = result.on_meta && run_meta_form(jit, i, places.target, result);
            if (!has_form) run_range(jit, {i, end}, places.factory, result);
            if (result.on_meta) lay_out_as_on(places.target, op, result);
            tell_apart(jit, op, changed, result);
        } catch (const Error&) {
            throw;
        } catch (const std::exception& error) {
            throw_if_known(error);
            const std::string inner = failed_op(error.what());
            throw Error(ErrorKind::BadData, op_failure(inner.empty() ? op_text(jit, op.node) : inner, error.what()));
        }
        watch_gradients(jit, {i, end}, result, watch);
        if (result.on_meta) {
            result.kept_bytes[static_cast<size_t>(i)] = std::max<int64_t>(0, memory->alive_bytes() - bytes_before);
        }
        i = end;
    }
    result.gradient_flips = watch.flips();
    return result;
}

using Shapes = std::vector<std::vector<int64_t>>;

Shapes shapes_in(const c10::IValue& content) {
    Shapes shapes;
    for (const at::Tensor& tensor : tensors_in(content)) shapes.push_back(tensor.sizes().vec());
    return shapes;
}

ProbeResult probe_on_cpu(const JitGraph& jit, const std::vector<ProbeInput>& inputs, int64_t microbatch_size,
                         const std::function<at::Tensor(size_t)>& weight) {
    const auto probe_from = [&](int64_t sample) {
        const auto input_from = [&](const ProbeInput& input) { return read_input(input, sample, microbatch_size); };
        return probe_on(jit, inputs, input_from, weight, {at::kCPU, at::kCPU, at::kCPU});
    };
    ProbeResult result = probe_from(0);
    if (std::ranges::none_of(inputs, [](const ProbeInput& input) { return bool(input.read); })) return result;
    try {
        for (const auto& [value, content] : probe_from(microbatch_size).values) {
            if (shapes_in(result.values.at(value)) != shapes_in(content)) result.varying.insert(value);
        }
    } catch (const Error&) {
        // A run will say it, when it comes to that microbatch.
    }
    return result;
}

/// None where an op fails there: where it looks at numbers. Those of what the model makes of nothing are there in the
/// second trial, in which ops that want all their tensors in one place may fail.
std::optional<ProbeResult> probe_on_meta(const JitGraph& jit, const std::vector<ProbeInput>& inputs,
                                         int64_t microbatch_size, at::Device target) {
    complete_meta_kernels();
    report_meta_memory();
    const auto zeros = [&](const ProbeInput& input) { return zero_input(input.field, microbatch_size, at::kMeta); };
    for (const at::Device factory : {at::kMeta, at::kCPU}) {
        try {
            return probe_on(jit, inputs, zeros, {}, {at::kMeta, factory, target});
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
    std::optional<CardAutocastScope> as_on_cards(jit.modes.autocast);
    std::optional<ProbeResult> on_meta = probe_on_meta(jit, inputs, microbatch_size, device);
    const bool casts_on_cpu = jit.casts && device.is_cpu();
    if (!casts_on_cpu) return on_meta ? *std::move(on_meta) : on_cpu();
    as_on_cards.reset();
    // It leaves tensors of the meta device as they are, and what it casts is written down nowhere. What ops keep is
    // about what they keep on cards.
    const AutocastScope scope(at::kCPU, jit.modes.autocast);
    ProbeResult result = on_cpu();
    if (on_meta) result.kept_bytes = std::move(on_meta->kept_bytes);
    return result;
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
