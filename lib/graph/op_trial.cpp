#include "graph/op_trial.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/alias.h>

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_set>

#include "base/error.hpp"
#include "graph/card_autocast.hpp"
#include "graph/gradient_watch.hpp"
#include "graph/ivalue_tensors.hpp"
#include "graph/jit_alias.hpp"
#include "graph/jit_branches.hpp"
#include "graph/jit_containers.hpp"
#include "graph/jit_executable.hpp"
#include "graph/meta_forms.hpp"
#include "graph/meta_kernels.hpp"
#include "graph/meta_layouts.hpp"
#include "graph/meta_memory.hpp"
#include "graph/op_names.hpp"
#include "graph/torch_errors.hpp"

namespace vpp {

using torch::jit::Value;

namespace {

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

std::vector<c10::IValue> inputs_of(const torch::jit::Node* node, const TrialValues& values) {
    std::vector<c10::IValue> inputs;
    for (const Value* input : node->inputs()) {
        const auto constant = torch::jit::toIValue(input);
        inputs.push_back(constant ? *constant : values.at(input));
    }
    return inputs;
}

/// Runs an op that has a form of its own on the meta device: that of `target`. Gives whether it has one.
bool run_meta_form(const JitOp& op, at::Device target, TrialValues& values) {
    const torch::jit::Node* node = op.node;
    const MetaForm form = find_meta_form(node->kind().toQualString());
    if (!form) return false;
    std::vector<c10::IValue> inputs = inputs_of(node, values);
    const at::AutoGradMode grad(op.modes.grad);
    if (op.modes.autocast) cast_as_on_cards(c10::toString(node->schema().operator_name()), inputs);
    values[node->output()] = form(inputs, target);
    return true;
}

/// Lays the output of an op that ran on the meta device out as `target` does.
void lay_out_as_on(at::Device target, const JitOp& op, TrialValues& values) {
    const MetaLayout layout = find_meta_layout(op.node->kind().toQualString());
    if (!layout) return;
    const at::AutoGradMode grad(op.modes.grad);
    const std::optional<at::MemoryFormat> format = layout(inputs_of(op.node, values), target);
    c10::IValue& output = values.at(op.node->output());
    if (format) output = output.toTensor().clone(*format);
}

/// Its constants count as no op's memory.
std::unique_ptr<Executable> compiled(const JitGraph& jit, OpRange range, const std::vector<Value*>& inputs,
                                     const std::vector<Value*>& outputs, at::Device factory) {
    const UntoldMetaMemory constants;
    return compile_ops(jit, range.list(), inputs, outputs, factory);
}

/// Runs ops as one piece; the values made inside are all kept.
void run_range(const JitGraph& jit, OpRange range, at::Device factory, TrialValues& values) {
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
    for (const Value* input : inputs) arguments.push_back(values.at(input));
    std::vector<c10::IValue> results = compiled(jit, range, inputs, outputs, factory)->run(std::move(arguments), 0);
    for (size_t i = 0; i < outputs.size(); ++i) values[outputs[i]] = std::move(results[i]);
}

/// Its rows may differ in length, so it has no shape.
void refuse_nested(const JitGraph& jit, const JitOp& op, const TrialValues& values) {
    for (const Value* made : op.node->outputs()) {
        const std::vector<at::Tensor> tensors = tensors_in(values.at(made));
        if (std::ranges::none_of(tensors, [](const at::Tensor& tensor) { return tensor.is_nested(); })) continue;
        throw Error(ErrorKind::BadData, op_text(jit, op.node) +
                                            " gives a nested tensor, which has no shape and is not supported; "
                                            "make nn.TransformerEncoder with enable_nested_tensor=False, or use "
                                            "padding and a mask");
    }
}

/// What the values hold, as zeros on the CPU.
TrialValues over_zeros(const std::vector<Value*>& used, const TrialValues& values) {
    TrialValues zeros;
    for (const Value* value : used) zeros[value] = zeros_on_cpu(values.at(value));
    return zeros;
}

/// Whether an op that failed on the meta device fails on the CPU with the same words, where all numbers are 0. Which
/// way a branch goes and when a loop ends follows the numbers: of these that is not known.
bool fails_alike_on_cpu(const JitGraph& jit, int index, const TrialValues& values, const std::string& failure) {
    torch::jit::Node* node = jit.ops[static_cast<size_t>(index)].node;
    if (!node->blocks().empty() || node->kind() == torch::jit::prim::Enter) return false;
    try {
        TrialValues zeros = over_zeros(values_used(node), values);
        const bool stays_on_meta = std::ranges::any_of(zeros, [](const auto& entry) {
            const std::vector<at::Tensor> tensors = tensors_in(entry.second);
            return std::ranges::any_of(tensors, [](const at::Tensor& tensor) { return tensor.is_meta(); });
        });
        if (stays_on_meta) return false;
        run_range(jit, {index, index + 1}, at::kCPU, zeros);
    } catch (const std::exception& error) {
        return core_of(error.what()) == core_of(failure);
    }
    return false;
}

/// A tensor over the same memory that needs a gradient, by a history that is never followed.
at::Tensor with_gradient(const at::Tensor& tensor) {
    at::Tensor copy = tensor.detach();
    give_gradient(copy);
    return copy;
}

bool needs_gradient(const c10::IValue& content) {
    return std::ranges::any_of(tensors_in(content), [](const at::Tensor& tensor) { return tensor.requires_grad(); });
}

}  // namespace

bool may_write_inputs(const torch::jit::Node* node) {
    const c10::FunctionSchema* schema = node->maybeSchema();
    return !schema || schema->is_mutable() || !node->blocks().empty();
}

OpTrial::OpTrial(const JitGraph& jit, const TrialPlaces& places)
    : jit_(jit),
      places_(places),
      slow_([&jit](int op) { return op_text(jit, jit.ops[static_cast<size_t>(op)].node); }) {}

OpRange OpTrial::run(int index, TrialValues& values) {
    const JitOp& op = jit_.ops[static_cast<size_t>(index)];
    // The object made for a guard comes right before its Enter and cannot leave the interpreter.
    const bool guard = op.node->kind() == torch::jit::prim::Enter;
    const OpRange range{index, guard ? end_of_guard(jit_, index) : index + 1};
    const bool on_meta = places_.device.is_meta();
    const int64_t num_before = num_runs_over_zeros();
    note_changed(op, values);
    slow_.begin(index);
    try {
        const bool has_form = on_meta && run_meta_form(op, places_.target, values);
        if (!has_form) run_range(jit_, range, places_.factory, values);
        refuse_nested(jit_, op, values);
        if (on_meta) lay_out_as_on(places_.target, op, values);
        tell_apart(op, values);
    } catch (const Error&) {
        throw;
    } catch (const std::exception& error) {
        throw_if_known(error);
        const std::string inner = failed_op(error.what());
        const std::string text = op_failure(inner.empty() ? op_text(jit_, op.node) : inner, error.what());
        const bool has_zeros = num_runs_over_zeros() != num_before;
        if (on_meta && places_.asks_cpu && !has_zeros && fails_alike_on_cpu(jit_, index, values, error.what())) {
            throw FailsAnywhere(ErrorKind::BadData, text);
        }
        throw Error(ErrorKind::BadData, text);
    }
    return range;
}

void OpTrial::note_changed(const JitOp& op, const TrialValues& values) {
    // What nobody else holds no op can take, and it would keep memory alive.
    std::erase_if(others_with_gradient_, [](const c10::IValue& one) { return one.use_count() == 1; });
    if (!may_write_inputs(op.node)) return;
    const std::vector<Value*> used = values_used(op.node);
    const auto content = [&](const Value* value) -> const c10::IValue& { return values.at(value); };
    if (std::ranges::none_of(used, needs_gradient, content)) return;
    for (const Value* value : used) {
        if (is_container(value) && may_hold_others(value)) others_with_gradient_.push_back(content(value));
    }
}

bool OpTrial::may_need_gradient(const c10::IValue& container) const {
    return std::ranges::any_of(others_with_gradient_, [&](const c10::IValue& one) { return one.is(container); });
}

/// What comes out of control flow, or of a list that it changes, is a tensor of its own, though this time it may be
/// one that went in or came out before; and it may need a gradient if anything that went in does, though the way that
/// was taken gave none. So may what is made of such a list, or of one that control flow gives.
void OpTrial::tell_apart(const JitOp& op, TrialValues& values) {
    const bool may_be_others = may_give_others(op.node);
    std::unordered_set<const void*> known;
    bool gradient = false;
    for (const Value* used : values_used(op.node)) {
        const c10::IValue& content = values.at(used);
        gradient = gradient || may_need_gradient(content);
        if (!may_be_others) continue;
        gradient = gradient || needs_gradient(content);
        for (const at::Tensor& tensor : tensors_in(content)) known.insert(tensor.unsafeGetTensorImpl());
    }
    gradient = gradient && jit_.modes.grad && op.modes.grad;
    if (!may_be_others && !gradient) return;
    const auto apart = [&](const at::Tensor& tensor) {
        const bool differentiable = tensor.is_floating_point() || tensor.is_complex();
        const bool is_known = !known.insert(tensor.unsafeGetTensorImpl()).second;
        if (gradient && differentiable && !tensor.requires_grad()) return with_gradient(tensor);
        return is_known ? at::alias(tensor) : tensor;
    };
    for (const Value* made : op.node->outputs()) {
        c10::IValue& content = values.at(made);
        if (content.isTensor() || is_tuple_of_tensors(*made->type())) {
            content = map_tensors(content, apart);
        } else if (gradient && !content.isNone() && holds_tensors(*made->type())) {
            others_with_gradient_.push_back(content);
        }
    }
}

}  // namespace vpp
