#include "graph/input_trial.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/util/Exception.h>
#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "base/error.hpp"
#include "graph/ivalue_tensors.hpp"
#include "graph/jit_executable.hpp"
#include "graph/jit_graph.hpp"
#include "graph/jit_load.hpp"
#include "graph/probe.hpp"
#include "graph/slow_trial.hpp"
#include "graph/torch_dtype.hpp"
#include "graph/torch_errors.hpp"

namespace vpp {

using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Value;

namespace {

/// What may run on the CPU as a trial.
constexpr int64_t kMostWeightBytes = int64_t{256} << 20;
constexpr int64_t kMostKeptBytes = int64_t{1} << 30;

/// An op that says what one of its inputs is; places of its inputs, -1 for none.
struct TellingOp {
    const char* name;
    int data;
    int weight;
    InputUse use;
    size_t least_dims = 0;  ///< of the weight
    int groups = -1;
};

constexpr TellingOp kTellingOps[] = {
    {"aten::linear", 0, 1, InputUse::Linear, 2},
    {"aten::conv1d", 0, 1, InputUse::Convolution, 3, 6},
    {"aten::conv2d", 0, 1, InputUse::Convolution, 3, 6},
    {"aten::conv3d", 0, 1, InputUse::Convolution, 3, 6},
    {"aten::_convolution", 0, 1, InputUse::Convolution, 3, 8},
    {"aten::embedding", 1, 0, InputUse::Indices, 2},
    {"aten::layer_norm", 0, 2, InputUse::Normalized, 1},
    {"aten::_pack_padded_sequence", 1, -1, InputUse::Lengths},
    {"aten::where", 0, -1, InputUse::Mask},
    {"aten::masked_fill", 1, -1, InputUse::Mask},
    {"aten::masked_fill_", 1, -1, InputUse::Mask},
    {"aten::masked_select", 1, -1, InputUse::Mask},
    {"aten::cross_entropy_loss", 1, -1, InputUse::Classes},
    {"aten::nll_loss", 1, -1, InputUse::Classes},
    {"aten::nll_loss_nd", 1, -1, InputUse::Classes},
    {"aten::ctc_loss", 1, -1, InputUse::Classes},
    {"aten::gather", 2, -1, InputUse::Classes},
    {"aten::mse_loss", 1, -1, InputUse::Target},
    {"aten::l1_loss", 1, -1, InputUse::Target},
    {"aten::smooth_l1_loss", 1, -1, InputUse::Target},
    {"aten::huber_loss", 1, -1, InputUse::Target},
    {"aten::binary_cross_entropy_with_logits", 1, -1, InputUse::Target},
};

/// What they give says nothing of what they take.
constexpr const char* kComparisons[] = {"aten::eq", "aten::ne", "aten::lt", "aten::le", "aten::gt", "aten::ge"};

bool is_comparison(const Node* node) {
    return std::ranges::any_of(kComparisons, [&](const char* name) { return is_op(node, name); });
}

const TellingOp* telling_op(const Node* node) {
    for (const TellingOp& op : kTellingOps) {
        if (node->kind() == c10::Symbol::fromQualString(op.name)) return &op;
    }
    return nullptr;
}

bool is_class_loss(const Node* node) {
    const TellingOp* telling = telling_op(node);
    return telling && telling->use == InputUse::Classes && !is_op(node, "aten::gather");
}

/// The op of a loss over classes: one of PyTorch's, else the last that picks scores by gather; null without one.
const Node* class_loss(const JitGraph& jit) {
    const Node* last = nullptr;
    for (const Node* node : jit.graph->nodes()) {
        if (is_class_loss(node)) return node;
        if (is_op(node, "aten::gather")) last = node;
    }
    return last;
}

/// Follows an input through the ops that hand it on as their first input, up to one that tells what it is.
class Follower {
  public:
    Follower(const JitGraph& jit, ForwardArgument& argument)
        : jit_(jit), argument_(argument), class_loss_(class_loss(jit)) {}

    void follow(Value* input) {
        derived_.insert(input);
        visit(jit_.graph->block());
    }

  private:
    /// True when it is found.
    bool visit(Block* block) {
        for (Node* node : block->nodes()) {
            const TellingOp* op = telling_op(node);
            const bool picks_others = is_op(node, "aten::gather") && node != class_loss_;
            if (op && !picks_others && tells(*op, node)) return true;
            for (Block* inner : node->blocks()) {
                if (visit(inner)) return true;
            }
            if (node->inputs().empty() || !derived_.contains(node->input(0)) || is_comparison(node)) continue;
            for (Value* output : node->outputs()) {
                if (output->type()->isSubtypeOf(*c10::TensorType::get())) derived_.insert(output);
            }
        }
        return false;
    }

    bool tells(const TellingOp& op, const Node* node) {
        const auto weight = op.weight < 0 ? std::nullopt : shape_of(node->input(static_cast<size_t>(op.weight)));
        if (weight) last_weight_ = *weight;
        if (!derived_.contains(node->input(static_cast<size_t>(op.data)))) return false;
        if (op.weight >= 0 && (!weight || weight->size() < op.least_dims)) return false;
        argument_.use = op.use;
        argument_.weight = weight ? *weight : last_weight_;
        if (op.groups >= 0) {
            const auto groups = torch::jit::toIValue(node->input(static_cast<size_t>(op.groups)));
            if (groups && groups->isInt()) argument_.groups = groups->toInt();
        }
        return true;
    }

    std::optional<std::vector<int64_t>> shape_of(const Value* value) const {
        for (const JitParameter& parameter : jit_.parameters) {
            if (parameter.value == value) return parameter.tensor.sizes().vec();
        }
        return std::nullopt;
    }

    const JitGraph& jit_;
    ForwardArgument& argument_;
    const Node* class_loss_;
    std::unordered_set<const Value*> derived_;
    std::vector<int64_t> last_weight_;
};

/// What forward returned, one entry a part; parts that are no tensors are left out.
void collect_outputs(const c10::IValue& value, TriedForward& tried) {
    if (value.isTensor() && value.toTensor().defined()) {
        const at::Tensor& tensor = value.toTensor();
        tried.outputs.push_back({from_torch(tensor.scalar_type()), tensor.sizes().vec(), tensor.requires_grad()});
    } else if (value.isTuple()) {
        for (const c10::IValue& part : value.toTupleRef().elements()) {
            tried.all_tensors = tried.all_tensors && part.isTensor();
            collect_outputs(part, tried);
        }
    } else if (value.isList()) {
        for (const c10::IValue& part : value.toListRef()) collect_outputs(part, tried);
    } else if (value.isGenericDict()) {
        for (const auto& entry : value.toGenericDict()) collect_outputs(entry.value(), tried);
    } else {
        tried.all_tensors = false;
    }
}

/// Along which dimension of the scores the classes lie.
int64_t class_dim_of(const Node* node, const at::Tensor& scores) {
    if (is_op(node, "aten::gather")) {
        const auto dim = torch::jit::toIValue(node->input(1));
        return dim ? dim->toInt() : -1;
    }
    return scores.dim() == 1 || is_op(node, "aten::ctc_loss") ? -1 : 1;
}

std::optional<int64_t> num_classes_of(const JitGraph& jit, const ProbeResult& result) {
    const Node* loss = class_loss(jit);
    const auto scores = loss ? result.values.find(loss->input(0)) : result.values.end();
    if (scores == result.values.end() || !scores->second.isTensor()) return std::nullopt;
    const at::Tensor& tensor = scores->second.toTensor();
    if (tensor.dim() == 0) return std::nullopt;
    return tensor.size(class_dim_of(loss, tensor));
}

/// A trial on numbers keeps all values.
int64_t bytes_of_all(const ProbeResult& result) {
    std::unordered_set<const c10::StorageImpl*> known;
    int64_t bytes = 0;
    for (const auto& [value, content] : result.values) {
        for (const at::Tensor& tensor : tensors_in(content)) {
            const bool is_new = tensor.has_storage() && known.insert(tensor.storage().unsafeGetStorageImpl()).second;
            if (is_new) bytes += static_cast<int64_t>(tensor.storage().nbytes());
        }
    }
    return bytes;
}

bool is_small(const JitGraph& jit, const ProbeResult& result) {
    int64_t bytes = 0;
    for (const JitParameter& parameter : jit.parameters) bytes += static_cast<int64_t>(parameter.tensor.nbytes());
    return bytes <= kMostWeightBytes && bytes_of_all(result) <= kMostKeptBytes;
}

/// Bell-shaped, or below the bound.
at::Tensor random_input(const Field& field, int64_t samples, const at::Generator& generator) {
    const std::vector<int64_t> shape = field.batch_shape(samples);
    const auto options = at::TensorOptions().dtype(to_torch(field.dtype));
    if (is_floating(field.dtype)) return at::randn(shape, generator, options);
    if (field.bound == 0) return at::zeros(shape, options);
    return at::randint(field.bound, shape, generator, options);
}

/// Weights are all the same: those of 0 would be divided by where they are normalised.
at::Tensor made_up_weight(const at::Tensor& weight) {
    return weight.is_floating_point() ? at::full_like(weight, 0.02) : at::zeros_like(weight);
}

/// Whether a number among them, as a loss is one, is not finite.
bool has_lost_number(const c10::IValue& returned) {
    return std::ranges::any_of(tensors_in(returned), [](const at::Tensor& tensor) {
        return tensor.dim() == 0 && tensor.is_floating_point() && !std::isfinite(tensor.item<double>());
    });
}

/// Gives what fails; empty: nothing.
std::string problem_on_cpu(const JitGraph& jit, const std::vector<ProbeInput>& inputs, int64_t samples,
                           Value* returned) {
    const at::Generator generator = at::detail::createCPUGenerator(0);
    std::vector<Value*> values;
    std::vector<c10::IValue> contents;
    for (size_t i = 0; i < inputs.size(); ++i) {
        values.push_back(jit.inputs[i].value);
        contents.emplace_back(random_input(inputs[i].field, samples, generator));
    }
    for (const JitParameter& parameter : jit.parameters) {
        if (!parameter.value) continue;
        values.push_back(parameter.value);
        contents.emplace_back(made_up_weight(parameter.tensor));
    }
    const OpRange all{0, static_cast<int>(jit.ops.size())};
    const at::AutoGradMode grad(jit.modes.grad);
    const SlowTrial watch([](int) { return std::string("forward"); });
    try {
        const std::vector<c10::IValue> made =
            compile_ops(jit, all.list(), values, {returned})->run(std::move(contents), 0);
        if (has_lost_number(made.at(0))) return "the loss is not finite";
    } catch (const Error& error) {
        return error.problems().front().message;
    } catch (const std::exception& error) {
        throw_if_known(error);
        return model_failure(error.what());
    }
    return "";
}

constexpr const char* kOptional = "Optional[Tensor]";
constexpr std::string_view kTargets[] = {"targets", "target", "labels", "label"};

/// Without it forward returns scores alone, with it a loss.
bool is_optional_target(const ForwardArgument& argument) {
    return argument.has_default && argument.type == kOptional &&
           std::ranges::find(kTargets, argument.name) != std::end(kTargets);
}

/// Of the first weights that are numbers.
DType dtype_of_weights(const JitGraph& jit) {
    for (const JitParameter& parameter : jit.parameters) {
        const at::ScalarType dtype = parameter.tensor.scalar_type();
        if (dtype == at::kFloat || dtype == at::kDouble || dtype == at::kHalf || dtype == at::kBFloat16)
            return from_torch(dtype);
    }
    return DType::F32;
}

/// Of shapes that are only tried nobody wants to know what LibTorch thinks.
class NoWarnings : public c10::WarningHandler {
  public:
    void process(const c10::Warning&) override {}
};

void check_type(const ForwardArgument& argument) {
    if (argument.type == "Tensor" || argument.type == kOptional) return;
    throw Error(ErrorKind::BadData, "forward's argument '" + printable(argument.name) + "' is of type " +
                                        printable(argument.type) +
                                        " and has no default, but data fields are tensors; give it a default");
}

}  // namespace

struct InputTrial::Impl {
    torch::jit::Module model;  ///< owns the types that the graph refers to
    std::vector<LoadedFile> files;
    std::vector<ForwardArgument> arguments;
    JitGraph jit;
    Value* returned = nullptr;
    bool feeds_optional = false;

    void list_arguments(bool feeds_targets) {
        const auto& schema = model.get_method("forward").function().getSchema().arguments();
        for (size_t i = 1; i < schema.size(); ++i) {
            ForwardArgument& argument = arguments.emplace_back();
            argument.name = schema[i].name();
            argument.type = schema[i].type()->annotation_str();
            argument.has_default = schema[i].default_value().has_value();
            argument.numbers = dtype_of_weights(jit);
            if (!feeds_targets || !is_optional_target(argument)) continue;
            argument.has_default = false;
            feeds_optional = true;
        }
        for (size_t i = arguments.size(); i > 0; --i) {
            if (arguments[i - 1].has_default) bind_default(*jit.graph, i - 1, *schema[i].default_value());
        }
    }

    void bind_inputs() {
        size_t input = 0;
        for (const ForwardArgument& argument : arguments) {
            if (argument.has_default) continue;
            check_type(argument);
            Value* value = jit.graph->inputs()[input++];
            value->setType(c10::TensorType::get());
            jit.inputs.push_back({argument.name, value});
        }
    }

    void follow_inputs() {
        size_t input = 0;
        for (ForwardArgument& argument : arguments) {
            if (!argument.has_default) Follower(jit, argument).follow(jit.inputs[input++].value);
        }
    }
};

InputTrial::InputTrial(std::shared_ptr<const Archive> model, bool feeds_targets) : impl_(std::make_unique<Impl>()) {
    impl_->model = load_module(model, {}, impl_->files);
    impl_->model.train(true);
    JitGraph& jit = impl_->jit;
    jit.graph = inline_with_labels(impl_->model);
    resolve_attributes(jit, impl_->model);
    impl_->list_arguments(feeds_targets);
    impl_->bind_inputs();
    straighten(jit);
    impl_->follow_inputs();
    if (!jit.graph->outputs().empty()) impl_->returned = jit.graph->outputs()[0];
    find_modes(jit, at::kCPU);
    insert_reseeds(jit);
}

InputTrial::~InputTrial() = default;

const std::vector<ForwardArgument>& InputTrial::arguments() const {
    return impl_->arguments;
}

bool InputTrial::feeds_optional() const {
    return impl_->feeds_optional;
}

TriedForward InputTrial::run(const std::vector<Field>& fields, int64_t samples) const {
    const JitGraph& jit = impl_->jit;
    check(fields.size() == jit.inputs.size(), "every argument without a default has a field");
    std::vector<ProbeInput> inputs;
    for (size_t i = 0; i < fields.size(); ++i) inputs.push_back({jit.inputs[i].value, fields[i]});
    const auto weight = [&](size_t i) {
        const at::Tensor& tensor = jit.parameters[i].tensor;
        return at::zeros_like(tensor).set_requires_grad(tensor.requires_grad());
    };
    NoWarnings unheard;
    const c10::WarningUtils::WarningHandlerGuard quiet(&unheard);
    const ProbeResult result = probe(jit, inputs, samples, weight);
    TriedForward tried;
    const auto returned = result.values.find(impl_->returned);
    if (returned != result.values.end()) collect_outputs(returned->second, tried);
    tried.num_classes = num_classes_of(jit, result);
    if (impl_->returned && is_small(jit, result)) {
        tried.problem = problem_on_cpu(jit, inputs, samples, impl_->returned);
    }
    return tried;
}

}  // namespace vpp
