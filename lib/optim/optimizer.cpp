#include "optim/optimizer.hpp"

#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <set>
#include <utility>

#include "base/error.hpp"
#include "optim/lr.hpp"
#include "optim/memory_order.hpp"
#include "optim/rules.hpp"
#include "plan/optimizer_groups.hpp"

namespace vpp {

namespace {

using detail::Slot;
using detail::UpdateBatch;

at::Tensor make_slot(const Slot& slot, const at::Tensor& parameter) {
    if (slot.is_scalar) return at::zeros({}, parameter.options().dtype(at::kFloat).requires_grad(false));
    return at::zeros_like(parameter, at::MemoryFormat::Preserve);
}

std::string state_name(const TrainedParameter& parameter, const Slot& slot) {
    return parameter.name + '.' + slot.name;
}

/// Which parameters of a group go into one call of the kernel.
UpdateBatch& batch_for(std::vector<UpdateBatch>& batches, const at::Tensor& parameter, bool is_first,
                       size_t num_slots) {
    for (UpdateBatch& batch : batches) {
        const at::Tensor& other = batch.parameters.front();
        if (batch.is_first == is_first && other.dtype() == parameter.dtype() && other.device() == parameter.device()) {
            return batch;
        }
    }
    UpdateBatch& batch = batches.emplace_back();
    batch.is_first = is_first;
    batch.slots.resize(num_slots);
    return batch;
}

}  // namespace

Optimizer::Optimizer(const OptimizerPlan& plan, std::vector<TrainedParameter> parameters)
    : rule_(&detail::find_update_rule(plan.kind)) {
    for (const OptimizerGroup& group : plan.groups) groups_.push_back(group.values);
    groups_.push_back(plan.values);
    std::set<std::string> names;
    for (TrainedParameter& parameter : parameters) {
        check(names.insert(parameter.name).second, "parameters have different names");
        check(parameter.tensor.defined() && parameter.tensor.is_floating_point() && parameter.tensor.is_leaf(),
              "a trained parameter is a floating-point leaf");
        const auto group = static_cast<size_t>(group_of(plan, parameter.name));
        trained_.push_back({std::move(parameter), group, {}});
    }
}

std::vector<double> Optimizer::learning_rates(const LrSchedulePlan& schedule, int64_t step, int64_t total_steps) const {
    std::vector<double> rates;
    for (const OptimizerValues& values : groups_) {
        rates.push_back(learning_rate(schedule, values.lr, step, total_steps));
    }
    return rates;
}

void Optimizer::step(const LrSchedulePlan& schedule, int64_t step, int64_t total_steps) {
    const c10::NoGradGuard no_grad;
    const std::vector<double> rates = learning_rates(schedule, step, total_steps);
    for (const Trained& trained : trained_) check_gradient(trained.parameter.name, trained.parameter.tensor);
    std::vector<std::vector<UpdateBatch>> batches(groups_.size());
    for (Trained& trained : trained_) {
        const at::Tensor& tensor = trained.parameter.tensor;
        if (!tensor.grad().defined()) continue;
        const std::vector<Slot> slots = rule_->slots(groups_[trained.group]);
        const bool is_first = trained.slots.empty();
        UpdateBatch& batch = batch_for(batches[trained.group], tensor, is_first, slots.size());
        if (is_first) {
            for (const Slot& slot : slots) trained.slots.push_back(make_slot(slot, tensor));
        }
        batch.parameters.push_back(tensor);
        batch.gradients.push_back(tensor.grad());
        for (size_t i = 0; i < slots.size(); ++i) batch.slots[i].push_back(trained.slots[i]);
    }
    for (size_t group = 0; group < groups_.size(); ++group) {
        for (const UpdateBatch& batch : batches[group]) rule_->update(batch, groups_[group], rates[group]);
    }
}

std::vector<StateTensor> Optimizer::state() const {
    std::vector<StateTensor> state;
    for (const Trained& trained : trained_) {
        const std::vector<Slot> slots = rule_->slots(groups_[trained.group]);
        for (size_t i = 0; i < trained.slots.size(); ++i) {
            state.push_back({state_name(trained.parameter, slots[i]), trained.slots[i]});
        }
    }
    return state;
}

int64_t Optimizer::full_state_bytes() const {
    size_t size = 0;
    for (const Trained& trained : trained_) {
        for (const Slot& slot : rule_->slots(groups_[trained.group])) {
            size += slot.is_scalar ? sizeof(float) : trained.parameter.tensor.nbytes();
        }
    }
    return static_cast<int64_t>(size);
}

void Optimizer::load_state(const StateReader& read) {
    const c10::NoGradGuard no_grad;
    std::vector<std::vector<at::Tensor>> loaded;
    for (const Trained& trained : trained_) loaded.push_back(read_slots(trained, read));
    for (size_t i = 0; i < trained_.size(); ++i) trained_[i].slots = std::move(loaded[i]);
}

std::vector<at::Tensor> Optimizer::read_slots(const Trained& trained, const StateReader& read) const {
    std::vector<at::Tensor> tensors;
    std::string found, missing;
    for (const Slot& slot : rule_->slots(groups_[trained.group])) {
        const std::string name = state_name(trained.parameter, slot);
        // The saved bytes are row-major; the slot keeps the parameter's strides.
        const at::Tensor& tensor = tensors.emplace_back(make_slot(slot, trained.parameter.tensor));
        const std::optional<at::Tensor> saved = read(name, tensor.scalar_type(), tensor.sizes().vec());
        if (!saved) {
            if (!slot.is_optional) missing = name;
            continue;
        }
        if (saved->sizes() != tensor.sizes() || saved->dtype() != tensor.dtype()) {
            throw Error(ErrorKind::BadData, "the saved optimizer state " + printable(name) +
                                                " has another dtype or shape than its parameter");
        }
        tensor.copy_(*saved);
        found = name;
    }
    if (found.empty()) return {};
    if (!missing.empty()) {
        throw Error(ErrorKind::BadData, "the saved optimizer state is not whole: " + printable(found) + " is there, " +
                                            printable(missing) + " is not");
    }
    return tensors;
}

}  // namespace vpp
