#include "program/shifted_targets.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/eq.h>

#include <exception>

namespace vpp {

namespace {

constexpr const char* kField = "targets";

// No token that a model looks for.
constexpr int64_t kFirstNumber = int64_t{1} << 24;

/// The targets of the loss where each one given is its own number; undefined where the model takes none of these.
at::Tensor numbered_targets(const CountedTargets& counted, const Fields& fields, int64_t microbatch_size,
                            const Graph& graph, Source& source) {
    std::vector<c10::IValue> inputs;
    for (int index : counted.inputs) {
        const GraphInput& input = graph.inputs[static_cast<size_t>(index)];
        const Field& field = fields.fields[static_cast<size_t>(fields.find(input.name))];
        const std::vector<int64_t> shape = field.batch_shape(microbatch_size);
        inputs.emplace_back(at::arange(kFirstNumber, kFirstNumber + num_elements(shape), at::kLong).view(shape));
    }
    const at::NoGradGuard no_gradients;
    try {
        return source.executable(counted.selection(graph), at::kCPU)
            ->run(std::move(inputs), 0)
            .at(0)
            .toTensor()
            .to(at::kLong);
    } catch (const std::exception&) {
        return {};
    }
}

bool is_among(const at::Tensor& targets, int64_t place) {
    return at::eq(targets, kFirstNumber + place).any().item<bool>();
}

/// What names the fields that the model should be given.
std::string remedy_text(const Plan& plan, const Graph& graph) {
    if (plan.pipeline.is_by_hand()) return "name 'tokens' in its place in the stage's inputs";
    std::string names;
    for (const GraphInput& input : graph.inputs) {
        names += (names.empty() ? "\"" : ", \"") + (input.name == kField ? "tokens" : input.name) + '"';
    }
    return "set model.inputs = [" + names + "]";
}

}  // namespace

std::string shifted_twice_text(const Plan& plan, const Fields& fields, int64_t microbatch_size, const Graph& graph,
                               Source& source) {
    if (plan.data.kind != "text" && plan.data.kind != "tokens") return "";
    const std::optional<CountedTargets> counted = find_counted_targets(graph);
    if (!counted || counted->inputs.size() != 1 || counted->ops.empty()) return "";
    if (graph.inputs[static_cast<size_t>(counted->inputs[0])].name != kField) return "";
    const at::Tensor targets = numbered_targets(*counted, fields, microbatch_size, graph, source);
    if (!targets.defined() || is_among(targets, 0) || !is_among(targets, 1)) return "";
    return std::string("the field '") + kField +
           "' is the tokens shifted by one, and forward shifts it once more: the "
           "loss leaves out the first of a sample, so the model would learn the token after the next; " +
           remedy_text(plan, graph);
}

}  // namespace vpp
