// The loss: one of forward's outputs, or ops appended behind one. The appended ops are those of torch.nn.functional.
#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>

#include "base/error.hpp"
#include "graph/jit_graph.hpp"
#include "graph/loss_kinds.hpp"

namespace vpp {

using torch::jit::Value;
namespace prim = torch::jit::prim;

namespace {

/// Forward's outputs with one level of tuple taken apart.
std::vector<Value*> outputs_of(torch::jit::Graph& graph) {
    Value* output = graph.outputs()[0];
    const auto tuple = output->type()->cast<c10::TupleType>();
    if (!tuple) return {output};
    if (output->node()->kind() == prim::TupleConstruct) return output->node()->inputs().vec();
    const torch::jit::WithInsertPoint at_end(graph.return_node());
    return graph.insertNode(graph.createTupleUnpack(output))->outputs().vec();
}

Value* pick_output(const std::vector<Value*>& outputs, int index, const char* key) {
    if (index < 0 || static_cast<size_t>(index) >= outputs.size()) {
        throw Error(ErrorKind::BadData, std::string(key) + " = " + std::to_string(index) + ", but forward returns " +
                                            std::to_string(outputs.size()) + " output(s), counted from 0");
    }
    Value* output = outputs[static_cast<size_t>(index)];
    if (!output->type()->isSubtypeOf(*c10::TensorType::get())) {
        throw Error(ErrorKind::BadData, std::string("output ") + std::to_string(index) + " of forward is a " +
                                            output->type()->str() + ", not a tensor; set " + key +
                                            " to the output that is wanted");
    }
    return output;
}

/// "output1", or a NamedTuple's own names.
std::vector<std::string> names_of_outputs(const torch::jit::Graph& graph, size_t num_outputs) {
    const auto tuple = graph.outputs()[0]->type()->cast<c10::TupleType>();
    const auto schema = tuple ? tuple->schema() : nullptr;
    std::vector<std::string> names;
    for (size_t i = 0; i < num_outputs; ++i) {
        const bool named = schema && i < schema->arguments().size();
        names.push_back(named ? schema->arguments()[i].name() : "output" + std::to_string(i));
    }
    return names;
}

/// Everything but the loss that is a tensor goes into one tuple at the end.
void gather_outputs(JitGraph& jit, const std::vector<Value*>& outputs, const std::vector<std::string>& names) {
    std::vector<Value*> kept;
    for (size_t i = 0; i < outputs.size(); ++i) {
        if (outputs[i] == jit.loss) continue;
        if (!outputs[i]->type()->isSubtypeOf(*c10::TensorType::get())) {
            jit.not_kept.push_back(names[i] + " (" + outputs[i]->type()->str() + ")");
            continue;
        }
        jit.outputs.push_back({names[i], outputs[i]});
        kept.push_back(outputs[i]);
    }
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

/// What a row of the table gets.
struct LossArguments {
    const LossPlan& loss;
    Value* input;
    Value* target;
    Value* none;
    int64_t reduction;  ///< 1 mean, 2 sum
};

struct LossKind {
    std::string name;
    std::string op;
    std::vector<torch::jit::NamedValue> (*arguments)(const LossArguments&);  ///< in the order of the op's schema
};

const std::vector<LossKind>& kinds() {
    using Arguments = std::vector<torch::jit::NamedValue>;
    static const std::vector<LossKind> kKinds{
        {"cross_entropy", "aten::cross_entropy_loss",
         [](const LossArguments& a) -> Arguments {
             return {a.input, a.target, a.none, a.reduction, a.loss.ignore_index, a.loss.label_smoothing};
         }},
        {"mse", "aten::mse_loss",
         [](const LossArguments& a) -> Arguments {
             return {a.input, a.target, a.reduction};
         }},
        {"nll", "aten::nll_loss_nd",
         [](const LossArguments& a) -> Arguments {
             return {a.input, a.target, a.none, a.reduction, a.loss.ignore_index};
         }},
        {"bce_with_logits", "aten::binary_cross_entropy_with_logits",
         [](const LossArguments& a) -> Arguments {
             return {a.input, a.target, a.none, a.none, a.reduction};
         }},
        {"l1", "aten::l1_loss",
         [](const LossArguments& a) -> Arguments {
             return {a.input, a.target, a.reduction};
         }},
    };
    return kKinds;
}

Value* append_loss_op(JitGraph& jit, const LossPlan& loss, Value* input, Value* target, int64_t reduction) {
    for (const LossKind& kind : kinds()) {
        if (kind.name != loss.kind) continue;
        Value* none = jit.graph->insertConstant(c10::IValue());
        return jit.graph->insert(c10::Symbol::fromQualString(kind.op),
                                 kind.arguments({loss, input, target, none, reduction}));
    }
    check(false, "the plan's checker knows every kind of loss");
    return nullptr;
}

Value* append_loss(JitGraph& jit, const LossPlan& loss, Value* input, const std::string& reduction) {
    Value* target = target_input(jit, loss.target);
    torch::jit::Node* last = *std::prev(jit.graph->nodes().end());
    const torch::jit::WithInsertPoint at_end(jit.graph->return_node());
    Value* result = append_loss_op(jit, loss, input, target, reduction == "mean" ? 1 : 2);
    for (auto it = std::next(last->iterator()); it != jit.graph->nodes().end(); ++it) set_module(*it, "loss");
    return result;
}

}  // namespace

std::vector<std::string> loss_kinds() {
    std::vector<std::string> names;
    for (const LossKind& kind : kinds()) names.push_back(kind.name);
    return names;
}

void select_loss(JitGraph& jit, const LossChoice& choice) {
    torch::jit::Graph& graph = *jit.graph;
    if (graph.outputs().size() != 1)
        throw Error(ErrorKind::BadData, "forward returns nothing; it must return the loss");
    torch::jit::Node* former = graph.outputs()[0]->node();
    const std::vector<Value*> outputs = outputs_of(graph);
    const std::vector<std::string> names = names_of_outputs(graph, outputs.size());
    Value* output = pick_output(outputs, choice.output, choice.loss ? "loss.input" : "model.loss_output");
    jit.loss = choice.loss ? append_loss(jit, *choice.loss, output, choice.reduction) : output;
    graph.eraseOutput(0);
    graph.registerOutput(jit.loss);
    // Ops that only other outputs need stay: eager Python runs them too, and they may advance buffers.
    if (former->kind() == prim::TupleConstruct && !former->hasUses()) former->destroy();
    if (choice.keep_outputs) gather_outputs(jit, outputs, names);
}

}  // namespace vpp
