#include "program/target_types.hpp"

#include <algorithm>
#include <string>

#include "base/error.hpp"
#include "graph/loss_kinds.hpp"

namespace vpp {

namespace {

Error refused_target(const Plan& plan, DType dtype, const std::string& needs) {
    return Error(ErrorKind::Plan,
                 "the target '" + plan.loss->target + "' is " + std::string(name_of(dtype)) + ", and " +
                     plan.loss->kind + ' ' + needs,
                 plan.where("loss.target"));
}

/// How a field gets another type. NumPy has no bfloat16, and a transform takes what has numbers and makes float32.
std::string type_remedy(DType dtype, DType wanted) {
    if (wanted == DType::BF16) return "let forward return float32";
    const std::string name(name_of(wanted));
    const bool is_transformed = wanted == DType::F32 && dtype != DType::Bool && dtype != DType::F16;
    return "save the field as " + name + ", with NumPy values.astype(\"" + name + "\")" +
           (is_transformed ? ", or add a [[data.transform]] of it with mean = [0.0] and std = [1.0]" : "");
}

bool are_classes(const Plan& plan, const Field& target) {
    const bool is_one_a_row = target.shape.empty() || plan.loss->class_dim == -1;
    return target.dtype == DType::I64 || (target.dtype == DType::U8 && is_one_a_row);
}

bool are_probabilities(const Field& target) {
    return is_floating(target.dtype) && !target.shape.empty();
}

void check_taken(const Plan& plan, const Field& target) {
    const auto refuse_unless = [&](bool is_taken, const std::string& needs) {
        if (!is_taken) throw refused_target(plan, target.dtype, needs);
    };
    const std::string classes = "needs classes of int64; save the field as int64, with NumPy labels.astype(\"int64\")";
    const std::string floats = "needs floating point; " + type_remedy(target.dtype, DType::F32);
    switch (target_types(plan.loss->kind)) {
        case TargetTypes::Classes:
            return refuse_unless(are_classes(plan, target), classes);
        case TargetTypes::ClassesOrProbabilities:
            return refuse_unless(are_classes(plan, target) || are_probabilities(target), classes);
        case TargetTypes::FloatingPoint:
            return refuse_unless(is_floating(target.dtype), floats);
        case TargetTypes::Numbers:
            return refuse_unless(target.dtype != DType::Bool, floats);
        case TargetTypes::SameAsOutput:
            return;
    }
}

/// Accuracy and means over targets count classes.
void check_counted(const Plan& plan, const Field& target) {
    if (!is_floating(target.dtype)) return;
    const auto refuse = [&](const std::string& what, const std::string& key) {
        throw Error(ErrorKind::Plan,
                    what + " needs targets that are classes, integers (got field " + plan.loss->target + " of " +
                        std::string(name_of(target.dtype)) + ")",
                    plan.where(key));
    };
    const auto& metrics = plan.eval.metrics;
    if (std::find(metrics.begin(), metrics.end(), "accuracy") != metrics.end()) refuse("accuracy", "eval.metrics");
    if (plan.model.is_target_mean()) refuse("model.loss_reduction = \"target_mean\"", "model.loss_reduction");
}

}  // namespace

void check_target_field(const Plan& plan, const Fields& fields) {
    const int place = plan.loss ? fields.find(plan.loss->target) : -1;
    if (place < 0) return;
    const Field& target = fields.fields[static_cast<size_t>(place)];
    check_taken(plan, target);
    check_counted(plan, target);
}

void check_target_of_output(const Plan& plan, const Graph& graph) {
    if (!plan.loss || target_types(plan.loss->kind) != TargetTypes::SameAsOutput) return;
    const bool autocast = plan.train.precision != TrainPlan{}.precision;
    const auto dtype_of = [&](int value) {
        const DType dtype = graph.tensor_of(value)->dtype;
        return autocast && (dtype == DType::BF16 || dtype == DType::F16) ? DType::F32 : dtype;  // as autocast has it
    };
    for (const GraphOp& op : graph.ops) {
        if (op.module != "loss" || op.inputs.size() < 2) continue;
        const DType output = dtype_of(op.inputs[0]), target = dtype_of(op.inputs[1]);
        if (output == target) continue;
        throw refused_target(plan, target,
                             "needs the type of the model's output, " + std::string(name_of(output)) + "; " +
                                 type_remedy(graph.tensor_of(op.inputs[1])->dtype, output));
    }
}

}  // namespace vpp
