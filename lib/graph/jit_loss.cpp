// The loss: one of forward's outputs, or ops appended behind one. The appended ops are those of torch.nn.functional.
#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>

#include "base/error.hpp"
#include "base/units.hpp"
#include "graph/jit_graph.hpp"
#include "graph/loss_kinds.hpp"

namespace vpp {

using torch::jit::Value;
namespace prim = torch::jit::prim;

namespace {

/// What forward returns, or a part of it.
struct Output {
    std::string name;
    Value* value;
};

/// Constant text keys of a dict that is made by one op.
std::optional<std::vector<std::string>> keys_of(const torch::jit::Node& dict) {
    std::vector<std::string> keys;
    for (size_t i = 0; i < dict.inputs().size(); i += 2) {
        const auto key = torch::jit::toIValue(dict.inputs()[i]);
        if (!key || !key->isString()) return std::nullopt;
        keys.push_back(key->toStringRef());
    }
    return keys;
}

/// As in Python a key that is there twice has the place of the first and the value of the last.
std::vector<Output> dict_parts(torch::jit::Node& dict, const std::vector<std::string>& keys) {
    std::vector<Output> parts;
    std::unordered_map<std::string, size_t> place_of;
    for (size_t i = 0; i < keys.size(); ++i) {
        Value* value = dict.inputs()[2 * i + 1];
        const auto [known, is_new] = place_of.emplace(keys[i], parts.size());
        if (is_new) {
            parts.push_back({keys[i], value});
        } else {
            parts[known->second].value = value;
        }
    }
    return parts;
}

/// The parts of a tuple, with a NamedTuple's own names, or of a list or dict that is made by one op and given to nobody
/// else, who might change it; none of anything else. Others are named by position.
std::optional<std::vector<Output>> output_parts(torch::jit::Graph& graph, Value* whole) {
    torch::jit::Node* maker = whole->node();
    std::vector<Output> parts;
    if (const auto tuple = whole->type()->cast<c10::TupleType>()) {
        const torch::jit::WithInsertPoint at_end(graph.return_node());
        const bool is_made = maker->kind() == prim::TupleConstruct;
        const auto values = is_made ? maker->inputs() : graph.insertNode(graph.createTupleUnpack(whole))->outputs();
        const auto schema = tuple->schema();
        for (size_t i = 0; i < values.size(); ++i) {
            const bool named = schema && i < schema->arguments().size();
            parts.push_back({named ? schema->arguments()[i].name() : std::to_string(i), values[i]});
        }
        return parts;
    }
    if (whole->uses().size() != 1) return std::nullopt;
    if (maker->kind() == prim::ListConstruct) {
        for (size_t i = 0; i < maker->inputs().size(); ++i) parts.push_back({std::to_string(i), maker->inputs()[i]});
        return parts;
    }
    const auto keys = maker->kind() == prim::DictConstruct ? keys_of(*maker) : std::nullopt;
    if (!keys) return std::nullopt;
    return dict_parts(*maker, *keys);
}

/// Positions are not names: "output1".
std::string name_of_output(const std::string& part) {
    return std::all_of(part.begin(), part.end(), [](char c) { return '0' <= c && c <= '9'; }) ? "output" + part : part;
}

/// Forward's outputs: the parts of what it returns, or that itself.
std::vector<Output> outputs_of(torch::jit::Graph& graph) {
    Value* whole = graph.outputs()[0];
    auto parts = output_parts(graph, whole);
    if (!parts) return {{"output0", whole}};
    for (Output& part : *parts) part.name = name_of_output(part.name);
    return *parts;
}

/// Containers inside taken apart too: "output1.0", "hidden.key".
void flatten(torch::jit::Graph& graph, const Output& output, std::vector<Output>& flat) {
    const auto parts = output_parts(graph, output.value);
    if (!parts) return flat.push_back(output);
    for (const Output& part : *parts) flatten(graph, {output.name + '.' + part.name, part.value}, flat);
}

Value* pick_output(const std::vector<Output>& outputs, int index, const char* key) {
    if (index < 0 || static_cast<size_t>(index) >= outputs.size()) {
        throw Error(ErrorKind::BadData, std::string(key) + " = " + std::to_string(index) + ", but forward returns " +
                                            counted_text(static_cast<int64_t>(outputs.size()), "output") +
                                            ", counted from 0");
    }
    Value* output = outputs[static_cast<size_t>(index)].value;
    if (!output->type()->isSubtypeOf(*c10::TensorType::get())) {
        throw Error(ErrorKind::BadData, std::string("output ") + std::to_string(index) + " of forward is of type " +
                                            output->type()->str() + ", no tensor; set " + key +
                                            " to the output that is wanted");
    }
    return output;
}

/// Everything but the loss that is a tensor is an output.
void keep_outputs(JitGraph& jit, const std::vector<Output>& outputs) {
    std::vector<Output> flat;
    for (const Output& output : outputs) flatten(*jit.graph, output, flat);
    for (const auto& [name, value] : flat) {
        if (value == jit.loss) continue;
        if (!value->type()->isSubtypeOf(*c10::TensorType::get())) {
            jit.not_kept.push_back(name + " (" + value->type()->str() + ")");
            continue;
        }
        jit.outputs.push_back({name, value});
    }
}

/// Outputs and tallies go into one tuple at the end.
void gather(JitGraph& jit) {
    std::vector<Value*> kept;
    for (const JitOutput& output : jit.outputs) kept.push_back(output.value);
    for (const JitOutput& tally : jit.tallies) kept.push_back(tally.value);
    if (kept.empty()) return;
    const torch::jit::WithInsertPoint at_end(jit.graph->return_node());
    set_module(jit.graph->insertNode(jit.graph->createTuple(kept)), "");
}

Value* target_input(JitGraph& jit, const std::string& field) {
    const auto known =
        std::find_if(jit.inputs.begin(), jit.inputs.end(), [&](const JitInput& input) { return input.name == field; });
    if (known != jit.inputs.end()) return known->value;
    // Behind the model's own inputs, before parameters: positions do not matter, names do.
    Value* value = jit.graph->addInput();
    value->setType(c10::TensorType::get());
    jit.inputs.push_back({field, value});
    return value;
}

/// As LibTorch numbers reductions.
constexpr int64_t kNone = 0, kMean = 1, kSum = 2;

/// What a row of the table gets.
struct LossArguments {
    const LossPlan& loss;
    Value* input;
    Value* target;
    Value* none;
    int64_t reduction;
};

struct LossKind {
    std::string name;
    std::string op;
    ComparedShapes shapes;
    TargetTypes targets;
    std::vector<torch::jit::NamedValue> (*arguments)(const LossArguments&);  ///< in the order of the op's schema
};

const std::vector<LossKind>& kinds() {
    using Arguments = std::vector<torch::jit::NamedValue>;
    static const std::vector<LossKind> kKinds{
        {"cross_entropy", "aten::cross_entropy_loss", ComparedShapes::Classes, TargetTypes::ClassesOrProbabilities,
         [](const LossArguments& a) -> Arguments {
             return {a.input, a.target, a.none, a.reduction, a.loss.ignore_index, a.loss.label_smoothing};
         }},
        {"mse", "aten::mse_loss", ComparedShapes::SameSamples, TargetTypes::SameAsOutput,
         [](const LossArguments& a) -> Arguments {
             return {a.input, a.target, a.reduction};
         }},
        {"nll", "aten::nll_loss_nd", ComparedShapes::Classes, TargetTypes::Classes,
         [](const LossArguments& a) -> Arguments {
             return {a.input, a.target, a.none, a.reduction, a.loss.ignore_index};
         }},
        {"bce_with_logits", "aten::binary_cross_entropy_with_logits", ComparedShapes::Same, TargetTypes::FloatingPoint,
         [](const LossArguments& a) -> Arguments {
             return {a.input, a.target, a.none, a.none, a.reduction};
         }},
        {"l1", "aten::l1_loss", ComparedShapes::SameSamples, TargetTypes::Numbers,
         [](const LossArguments& a) -> Arguments {
             return {a.input, a.target, a.reduction};
         }},
    };
    return kKinds;
}

const LossKind& find_kind(const std::string& name) {
    const auto found = std::ranges::find(kinds(), name, &LossKind::name);
    check(found != kinds().end(), "the plan's checker knows every kind of loss");
    return *found;
}

Value* append_loss_op(JitGraph& jit, const LossPlan& loss, Value* input, Value* target, int64_t reduction) {
    const LossKind& kind = find_kind(loss.kind);
    jit.compared = {kind.name, loss.target, kind.shapes, loss.class_dim == -1};
    Value* none = jit.graph->insertConstant(c10::IValue());
    return jit.graph->insert(c10::Symbol::fromQualString(kind.op),
                             kind.arguments({loss, input, target, none, reduction}));
}

/// Writes ops at the end of the graph, as those of one module.
template <typename Write>
auto append(JitGraph& jit, const std::string& module, const Write& write) {
    torch::jit::Node* last = *std::prev(jit.graph->nodes().end());
    const torch::jit::WithInsertPoint at_end(jit.graph->return_node());
    const auto result = write(*jit.graph);
    for (auto it = std::next(last->iterator()); it != jit.graph->nodes().end(); ++it) set_module(*it, module);
    return result;
}

/// What is compared: classes lie along dimension 1.
struct Compared {
    Value* input;
    Value* target;
};

/// Classes along dimension 1, as the ops take them. Others lie along the last one: a row for each target then, as in
/// F.cross_entropy(logits.flatten(0, -2), targets.flatten()).
Compared with_classes_second(torch::jit::Graph& graph, const LossChoice& choice, Value* input, Value* target) {
    if (choice.loss->class_dim != -1) return {input, target};
    Value* rows = graph.insert(c10::aten::flatten, {input, 0, -2});
    return {rows, graph.insert(c10::aten::flatten, {target, 0, choice.of_probabilities ? -2 : -1})};
}

/// Of the targets that count how many there are, and how many are the largest output along the classes.
std::vector<JitOutput> append_tallies(torch::jit::Graph& graph, int64_t ignore_index, const Compared& compared) {
    Value* largest = graph.insert(c10::aten::argmax, {compared.input, 1, false});
    Value* counted = graph.insert(c10::aten::ne, {compared.target, ignore_index});
    Value* hit =
        graph.insert(c10::aten::logical_and, {graph.insert(c10::aten::eq, {largest, compared.target}), counted});
    return {{"targets", graph.insert(c10::aten::sum, {counted})}, {"hits", graph.insert(c10::aten::sum, {hit})}};
}

/// The loss of the plan's, with its tallies.
Value* append_loss(JitGraph& jit, const LossChoice& choice, Value* input) {
    Value* target = target_input(jit, choice.loss->target);
    const Compared compared = append(
        jit, "loss", [&](torch::jit::Graph& graph) { return with_classes_second(graph, choice, input, target); });
    Value* loss = append(jit, "loss", [&](torch::jit::Graph&) {
        const int64_t reduction = choice.reduction == "mean" ? kMean : kSum;
        return append_loss_op(jit, *choice.loss, compared.input, compared.target, reduction);
    });
    if (!choice.count_hits) return loss;
    jit.tallies = append(jit, "accuracy", [&](torch::jit::Graph& graph) {
        return append_tallies(graph, choice.loss->ignore_index, compared);
    });
    return loss;
}

/// Forward's own loss as a sum, of which a mean over the targets of more than these samples can be made.
Value* as_sum(torch::jit::Graph& graph, Value* loss) {
    torch::jit::Node* node = loss->node();
    const c10::FunctionSchema* schema = node->maybeSchema();
    const auto place = [&](const char* name) { return schema ? schema->argumentIndexWithName(name) : std::nullopt; };
    const auto weight = place("weight"), reduction = place("reduction");
    const bool counts = place("ignore_index") && weight && reduction;
    const auto way = counts ? torch::jit::toIValue(node->input(static_cast<size_t>(*reduction))) : std::nullopt;
    std::string reason;
    if (!way || !way->isInt() || way->toInt() == kNone) {
        reason = std::string("it comes from ") + node->kind().toQualString();
    } else if (!node->input(static_cast<size_t>(*weight))->mustBeNone()) {
        reason = "its classes have weights";
    } else if (loss->uses().size() > 1) {
        reason = "forward takes it for something else too";
    }
    if (!reason.empty()) {
        throw Error(ErrorKind::Plan,
                    "model.loss_reduction = \"target_mean\" needs a loss that forward returns as cross_entropy or "
                    "nll_loss gives it, without weights of classes (" +
                        reason + "); let forward return its scores and add a [loss], or take \"mean\"");
    }
    const torch::jit::WithInsertPoint before(node);
    node->replaceInput(static_cast<size_t>(*reduction), graph.insertConstant(kSum));
    return loss;
}

}  // namespace

std::vector<std::string> loss_kinds() {
    std::vector<std::string> names;
    for (const LossKind& kind : kinds()) names.push_back(kind.name);
    return names;
}

TargetTypes target_types(const std::string& kind) {
    return find_kind(kind).targets;
}

void select_loss(JitGraph& jit, const LossChoice& choice) {
    torch::jit::Graph& graph = *jit.graph;
    check(graph.outputs().size() == 1, "a method has one result");
    if (graph.outputs()[0]->type()->kind() == c10::TypeKind::NoneType)
        throw Error(ErrorKind::BadData, "forward returns nothing; it must return the loss");
    torch::jit::Node* former = graph.outputs()[0]->node();
    const std::vector<Output> outputs = outputs_of(graph);
    Value* output = pick_output(outputs, choice.output, choice.loss ? "loss.input" : "model.loss_output");
    check(!choice.count_hits || choice.loss, "accuracy is that of a loss of the plan's");
    jit.loss = choice.loss ? append_loss(jit, choice, output) : output;
    if (!choice.loss && choice.reduction == "target_mean") jit.loss = as_sum(graph, output);
    if (choice.keep_outputs) keep_outputs(jit, outputs);
    gather(jit);
    graph.eraseOutput(0);
    graph.registerOutput(jit.loss);
    // Ops that only other outputs need stay: eager Python runs them too, and they may advance buffers.
    static constexpr std::array kContainers{prim::TupleConstruct, prim::ListConstruct, prim::DictConstruct};
    const bool is_container = std::find(kContainers.begin(), kContainers.end(), former->kind()) != kContainers.end();
    if (is_container && !former->hasUses()) former->destroy();
}

}  // namespace vpp
