#include "graph/jit_executable.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/jit/runtime/interpreter.h>

#include <unordered_map>

#include "base/error.hpp"
#include "graph/autocast.hpp"
#include "graph/backward_thread.hpp"
#include "graph/card_autocast.hpp"
#include "graph/jit_device.hpp"
#include "graph/op_names.hpp"

namespace vpp {

using torch::jit::Node;
using torch::jit::Value;

namespace {

class JitExecutable : public Executable {
  public:
    JitExecutable(const std::shared_ptr<torch::jit::Graph>& graph, std::vector<CastInput> cast_inputs,
                  int64_t num_sites, std::optional<at::ScalarType> autocast, at::DeviceType device)
        : code_(graph, "vpp_stage"),
          cast_inputs_(std::move(cast_inputs)),
          num_sites_(num_sites),
          autocast_(autocast),
          device_(device) {}

    std::vector<c10::IValue> run(std::vector<c10::IValue> inputs, uint64_t key) override {
        if (num_sites_ > 0) {
            inputs.emplace_back(at::zeros({num_sites_}, at::kLong));
            inputs.emplace_back(static_cast<int64_t>(key));
        }
        const at::AutoGradMode grad_as_before(at::GradMode::is_enabled());
        const AutocastScope autocast(casting_device(device_), autocast_);
        const BackwardOnThisThread one_order;
        torch::jit::InterpreterState(code_).run(inputs);
        return inputs;
    }

    const std::vector<CastInput>& cast_inputs() const override { return cast_inputs_; }

  private:
    torch::jit::Code code_;
    std::vector<CastInput> cast_inputs_;
    int64_t num_sites_;  ///< 0: nothing random inside, no counts and key are passed
    std::optional<at::ScalarType> autocast_;
    at::DeviceType device_;
};

/// LibTorch's interpreter (2.11) runs an op whose one result is used once, by what follows it, where that takes its
/// inputs. In `x + loop(x)` the loop is then behind the read of x, its body's is taken for the last one, and the second
/// time through there is none. An op in between, which does nothing, keeps the loop where it stands.
void keep_loops_in_place(torch::jit::Block* block) {
    for (Node* node : block->nodes()) {
        for (torch::jit::Block* inner : node->blocks()) keep_loops_in_place(inner);
        if (node->kind() != torch::jit::prim::Loop) continue;
        node->owningGraph()->create(torch::jit::prim::Drop, 0)->insertAfter(node);
    }
}

/// Copies ops into a graph of their own.
class Slicer {
  public:
    explicit Slicer(const OpModes& modes) : graph_(std::make_shared<torch::jit::Graph>()), modes_(modes) {}

    void add_input(Value* original) {
        values_[original] = graph_->addInput()->copyMetadata(original);
        number_of_input_.emplace(original, number_of_input_.size());
    }

    void append(const JitGraph& jit, const JitOp& op) {
        if (op.modes != modes_) graph_->appendNode(make_set_modes(*graph_, op.modes));
        modes_ = op.modes;
        if (op.random_site >= 0) {
            graph_->appendNode(make_reseed(*graph_, value(jit.counts), value(jit.key), op.random_site));
        }
        Node* clone = graph_->createClone(op.node, [this](Value* used) { return value(used); });
        for (size_t input : vpp::cast_inputs(jit, op)) {
            Value* const weight = op.node->input(input);
            cast_inputs_.push_back({number_of_input_.at(weight), *op.modes.autocast});
            Node* cast = graph_->appendNode(make_cast_weight(*graph_, value(weight), *op.modes.autocast));
            clone->replaceInput(input, cast->output());
        }
        name_op(jit, op.node, clone);
        graph_->appendNode(clone);
        for (size_t i = 0; i < clone->outputs().size(); ++i) values_[op.node->output(i)] = clone->output(i);
    }

    void add_output(Value* original) { graph_->registerOutput(value(original)); }

    std::shared_ptr<torch::jit::Graph> take() { return std::move(graph_); }
    const std::vector<CastInput>& cast_inputs() const { return cast_inputs_; }

  private:
    Value* value(Value* original) {
        const auto known = values_.find(original);
        if (known != values_.end()) return known->second;
        check(original->node()->kind() == torch::jit::prim::Constant, "a run of ops gets all its values as inputs");
        Node* clone = graph_->createClone(original->node(), [](Value* same) { return same; });
        graph_->block()->prependNode(clone);
        return values_[original] = clone->output();
    }

    std::shared_ptr<torch::jit::Graph> graph_;
    OpModes modes_;  ///< behind what was appended
    std::unordered_map<Value*, Value*> values_;
    std::unordered_map<Value*, size_t> number_of_input_;
    std::vector<CastInput> cast_inputs_;
};

}  // namespace

std::unique_ptr<Executable> compile_ops(const JitGraph& jit, const std::vector<int>& ops,
                                        const std::vector<Value*>& inputs, const std::vector<Value*>& outputs,
                                        at::Device device, std::optional<at::ScalarType> autocast) {
    bool random = false;
    for (int op : ops) random = random || jit.ops[static_cast<size_t>(op)].random;
    Slicer slicer(jit.modes);
    for (Value* input : inputs) slicer.add_input(input);
    if (random) {
        slicer.add_input(jit.counts);
        slicer.add_input(jit.key);
    }
    for (int op : ops) slicer.append(jit, jit.ops[static_cast<size_t>(op)]);
    for (Value* output : outputs) slicer.add_output(output);
    const std::shared_ptr<torch::jit::Graph> graph = slicer.take();
    if (!device.is_cpu()) place_graph(*graph, device);
    keep_loops_in_place(graph->block());
    return std::make_unique<JitExecutable>(graph, slicer.cast_inputs(), random ? jit.num_sites : 0, autocast,
                                           device.type());
}

}  // namespace vpp
