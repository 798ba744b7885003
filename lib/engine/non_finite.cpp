#include "engine/non_finite.hpp"

#include <ATen/ops/linalg_vector_norm.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <tuple>

#include "base/error.hpp"
#include "base/few.hpp"
#include "comm/collective.hpp"
#include "engine/loader.hpp"

namespace vpp {

namespace {

bool comes_before(const NonFiniteValue& one, const NonFiniteValue& other) {
    const auto key = [](const NonFiniteValue& value) {
        return std::tuple(value.is_backward, value.microbatch, value.is_backward ? -value.stage : value.stage,
                          value.replica);
    };
    return key(one) < key(other);
}

Bytes encode(const std::vector<NonFiniteValue>& found) {
    ByteWriter writer;
    writer.put(!found.empty());
    if (found.empty()) return writer.take();
    const NonFiniteValue& value = *std::min_element(found.begin(), found.end(), comes_before);
    writer.put(value.is_backward);
    writer.put(value.replica);
    writer.put(value.microbatch);
    writer.put(value.stage);
    writer.put_text(value.name);
    return writer.take();
}

}  // namespace

std::string to_text(const NonFiniteValue& value, int num_replicas) {
    return value.name + " of stage " + std::to_string(value.stage) + ", " + (value.is_backward ? "backward" : "F") +
           " of microbatch " + std::to_string(value.microbatch) +
           (num_replicas > 1 ? " of replica " + std::to_string(value.replica) : "");
}

std::string sample_names(const Dataset& data, const std::vector<Draw>& samples) {
    constexpr size_t kMostNamed = 16;
    std::vector<std::string> names;
    for (const Draw& draw : samples) names.push_back(std::to_string(data.stored_sample(draw.sample)));
    return (samples.size() == 1 ? "sample " : "samples ") + few_text(names, kMostNamed);
}

std::string non_finite_input(const Dataset& data, const Graph& graph, const std::vector<Draw>& samples) {
    const Loader loader(data, graph);
    for (size_t input = 0; input < graph.inputs.size(); ++input) {
        const std::string& name = graph.inputs[input].name;
        const int field = data.fields().find(name);
        if (field < 0 || !is_floating(data.fields().fields[static_cast<size_t>(field)].dtype)) continue;
        for (const Draw& draw : samples) {
            if (is_finite(loader.load(static_cast<int>(input), std::span(&draw, 1)))) continue;
            return "the field '" + printable(name) + "' of " + data.where(draw.sample, field);
        }
    }
    return "";
}

bool is_finite(const at::Tensor& tensor) {
    if (!tensor.is_floating_point() || tensor.numel() == 0) return true;
    // By its largest magnitude, which takes no memory of the tensor's size, as at::isfinite would.
    return std::isfinite(
        at::linalg_vector_norm(tensor.detach(), std::numeric_limits<double>::infinity()).item<double>());
}

std::optional<int> first_non_finite(Transport& transport, const std::map<int, at::Tensor>& parameters) {
    constexpr int kNone = std::numeric_limits<int>::max();
    const auto found = std::ranges::find_if(parameters, [](const auto& entry) { return !is_finite(entry.second); });
    ByteWriter writer;
    writer.put(found == parameters.end() ? kNone : found->first);
    int first = kNone;
    for (const Bytes& bytes : all_gather(transport, writer.take())) {
        first = std::min(first, ByteReader(bytes).get<int>());
    }
    if (first == kNone) return std::nullopt;
    return first;
}

NonFiniteWatch::NonFiniteWatch(Executor& executor, const Split& split, int replica,
                               std::vector<WatchedParameter> parameters)
    : executor_(executor), split_(split), replica_(replica), parameters_(std::move(parameters)) {
    executor_.set_watch({[this](const Edge& edge, int microbatch, Direction direction, const at::Tensor& tensor) {
                             see_tensor(edge, microbatch, direction, tensor);
                         },
                         [this](const Action& action) { see_action(action); }});
}

NonFiniteWatch::~NonFiniteWatch() {
    executor_.set_watch({});
}

void NonFiniteWatch::see_tensor(const Edge& edge, int microbatch, Direction direction, const at::Tensor& tensor) {
    if (is_finite(tensor)) return;
    const bool is_backward = direction == Direction::Backward;
    const int segment = is_backward ? edge.segments.consumer : edge.segments.producer;
    found_.push_back({is_backward, replica_, microbatch, split_.segments[static_cast<size_t>(segment)].stage,
                      (is_backward ? "the gradient of '" : "the tensor '") + edge.name + "'"});
}

void NonFiniteWatch::see_action(const Action& action) {
    const bool has_loss = action.kind == ActionKind::F && executor_.makes_loss();
    if (has_loss && !std::isfinite(executor_.loss_of(action.microbatch))) {
        found_.push_back({false, replica_, action.microbatch, action.stage, "the loss"});
    }
    if (!gives_weight_gradient(action.kind)) return;
    for (auto parameter = parameters_.begin(); parameter != parameters_.end();) {
        const at::Tensor& gradient = parameter->tensor.grad();
        if (!gradient.defined() || is_finite(gradient)) {
            ++parameter;
            continue;
        }
        found_.push_back(
            {true, replica_, action.microbatch, action.stage, "the gradient of '" + parameter->name + "'"});
        parameter = parameters_.erase(parameter);
    }
}

std::optional<NonFiniteValue> NonFiniteWatch::first(Transport& transport) const {
    std::optional<NonFiniteValue> first;
    for (const Bytes& bytes : all_gather(transport, encode(found_))) {
        ByteReader reader(bytes);
        if (!reader.get<bool>()) continue;
        NonFiniteValue value;
        value.is_backward = reader.get<bool>();
        value.replica = reader.get<int>();
        value.microbatch = reader.get<int>();
        value.stage = reader.get<int>();
        value.name = reader.get_text();
        if (!first || comes_before(value, *first)) first = std::move(value);
    }
    return first;
}

}  // namespace vpp
