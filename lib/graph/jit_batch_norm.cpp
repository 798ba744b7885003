// Deferred batch norm, as torchgpipe and torch.distributed.pipeline.sync.Pipe have it (their DeferredBatchNorm): a
// microbatch is normalised with its own statistics, and what the running statistics need is added up over the
// microbatches. Here the op itself adds, into whatever is bound as its three buffers, so they count as written: cuts,
// recompute and checkpoints treat them as those of any batch norm.
#include <ATen/OpMathType.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/sum.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/library.h>

#include <algorithm>
#include <unordered_map>

#include "base/error.hpp"
#include "graph/jit_graph.hpp"

namespace vpp {

using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Value;
namespace aten = torch::jit::aten;
namespace prim = torch::jit::prim;

namespace {

/// All dimensions but that of the channels.
std::vector<int64_t> summed_dims(const at::Tensor& input) {
    std::vector<int64_t> dims{0};
    for (int64_t dim = 2; dim < input.dim(); ++dim) dims.push_back(dim);
    return dims;
}

at::Tensor deferred_batch_norm(const at::Tensor& input, const std::optional<at::Tensor>& weight,
                               const std::optional<at::Tensor>& bias, const at::Tensor& sum,
                               const at::Tensor& sum_squares, const at::Tensor& count, double eps, bool cudnn_enabled) {
    {
        const at::NoGradGuard no_grad;
        const std::vector<int64_t> dims = summed_dims(input);
        const at::Tensor wide = input.to(at::toOpMathType(input.scalar_type()));  // halves would lose what they sum up
        sum.add_(at::sum(wide, dims));
        sum_squares.add_(at::sum(at::pow(wide, 2), dims));
        count.add_(input.numel() / input.size(1));
    }
    return at::batch_norm(input, weight, bias, {}, {}, /*training=*/true, /*momentum=*/0, eps, cudnn_enabled);
}

TORCH_LIBRARY_FRAGMENT(vpp, library) {
    library.def(torch::schema("vpp::deferred_batch_norm(Tensor input, Tensor? weight, Tensor? bias, "
                              "Tensor(a!) running_mean, Tensor(b!) running_var, Tensor(c!) num_batches_tracked, "
                              "float eps, bool cudnn_enabled) -> Tensor",
                              c10::AliasAnalysisKind::FROM_SCHEMA),
                deferred_batch_norm);
}

c10::Symbol deferred_kind() {
    return c10::Symbol::fromQualString("vpp::deferred_batch_norm");
}

bool is_one(const Value* value) {
    const auto constant = torch::jit::toIValue(value);
    if (!constant) return false;
    if (constant->isTensor()) return constant->toTensor().numel() == 1 && constant->toTensor().item<double>() == 1;
    return constant->isScalar() && constant->toScalar().toDouble() == 1;
}

/// Whether the node's training flag is known to be false.
bool is_off(const Node* node) {
    const Value* flag = argument_named(node, "training");
    const auto training = flag ? torch::jit::toIValue(flag) : std::nullopt;
    return training && training->isBool() && !training->toBool();
}

/// count += 1, in place
bool is_increment(const Node* node, const Value* count) {
    return node->kind() == aten::add_ && node->input(0) == count && is_one(node->input(1)) && is_one(node->input(2));
}

/// "bn.num_batches_tracked" for "bn.running_mean"; empty for a name of another form.
std::string counter_name(const std::string& mean) {
    static const std::string kMean = "running_mean";
    const size_t place = mean.rfind(kMean);
    if (place == std::string::npos) return "";
    return mean.substr(0, place) + "num_batches_tracked" + mean.substr(place + kMean.size());
}

class Deferrer {
  public:
    explicit Deferrer(JitGraph& jit) : jit_(jit) {
        for (size_t i = 0; i < jit.parameters.size(); ++i) {
            if (jit.parameters[i].value) index_of_[jit.parameters[i].value] = static_cast<int>(i);
        }
    }

    void run() {
        find(jit_.graph->block());
        for (Node* node : found_) defer(node);
        for (const DeferredBatchNorm& norm : jit_.deferred_batch_norms) remove_increments(norm.num_batches_tracked);
        for (const DeferredBatchNorm& norm : jit_.deferred_batch_norms) {
            for (int buffer : {norm.running_mean, norm.running_var, norm.num_batches_tracked}) check_uses(buffer);
        }
    }

  private:
    [[noreturn]] void refuse(const Node* node, const std::string& why) const {
        throw Error(ErrorKind::BadData, op_text(jit_, node) + " cannot have its statistics deferred: " + why +
                                            "; leave pipeline.deferred_batch_norm out");
    }

    void find(Block* block) {
        for (Node* node : block->nodes()) {
            for (Block* inner : node->blocks()) find(inner);
            if (std::string(node->kind().toUnqualString()).find("batch_norm") == std::string::npos) continue;
            if (!keeps_statistics(node) || is_off(node)) continue;
            if (node->kind() != aten::batch_norm) refuse(node, "only aten::batch_norm can");
            found_.push_back(node);
        }
    }

    bool keeps_statistics(const Node* node) const {
        if (node->kind() == aten::batch_norm) return !node->input(3)->mustBeNone() || !node->input(4)->mustBeNone();
        for (const Value* input : node->inputs()) {
            const auto known = index_of_.find(input);
            if (known != index_of_.end() && jit_.parameters[static_cast<size_t>(known->second)].is_buffer) return true;
        }
        return false;
    }

    int buffer_of(const Node* node, size_t input) const {
        const auto known = index_of_.find(node->input(input));
        if (known == index_of_.end()) refuse(node, "its running statistics are no buffers of the model");
        return known->second;
    }

    /// The counter beside a running mean; it becomes an input of the graph unless it is one.
    int counter_beside(const Node* node, int running_mean) {
        const std::string& mean = jit_.parameters[static_cast<size_t>(running_mean)].name;
        const std::string name = counter_name(mean);
        for (size_t i = 0; i < jit_.parameters.size(); ++i) {
            JitParameter& parameter = jit_.parameters[i];
            if (parameter.name != name || parameter.tensor.numel() != 1) continue;
            if (!parameter.value) {
                parameter.value = jit_.graph->addInput("num_batches_tracked");
                parameter.value->setType(c10::TensorType::get());
                index_of_[parameter.value] = static_cast<int>(i);
            }
            return static_cast<int>(i);
        }
        refuse(node, "there is no counter for '" + mean +
                         "' (named as in torch.nn.BatchNorm: running_mean, "
                         "running_var and num_batches_tracked)");
    }

    /// 1.0 / float(num_batches_tracked), the increment done before
    bool is_cumulative(const Value* momentum, const Value* count) const {
        const Node* quotient = momentum->node();
        if (quotient->kind() != aten::div || !is_one(quotient->input(0))) return false;
        const Node* number = quotient->input(1)->node();
        if (number->kind() != aten::Float) return false;
        return number->input(0) == count || is_increment(number->input(0)->node(), count);
    }

    void set_momentum(DeferredBatchNorm& norm, const Node* node) const {
        const auto momentum = torch::jit::toIValue(node->input(6));
        if (momentum && momentum->isDouble()) {
            norm.momentum = momentum->toDouble();
            return;
        }
        norm.cumulative =
            is_cumulative(node->input(6), jit_.parameters[static_cast<size_t>(norm.num_batches_tracked)].value);
        if (!norm.cumulative) refuse(node, "its momentum is neither a number nor 1 / num_batches_tracked");
    }

    /// Several calls of one module are one entry: their sums are added up together.
    void add(const DeferredBatchNorm& norm, const Node* node) {
        for (const DeferredBatchNorm& known : jit_.deferred_batch_norms) {
            const bool shares = known.running_mean == norm.running_mean || known.running_var == norm.running_var ||
                                known.num_batches_tracked == norm.num_batches_tracked;
            if (!shares) continue;
            if (known == norm) return;
            refuse(node, "it shares a buffer with another batch norm, but not all three, or with another momentum");
        }
        jit_.deferred_batch_norms.push_back(norm);
    }

    void defer(Node* node) {
        DeferredBatchNorm norm;
        norm.running_mean = buffer_of(node, 3);
        norm.running_var = buffer_of(node, 4);
        norm.num_batches_tracked = counter_beside(node, norm.running_mean);
        const auto training = torch::jit::toIValue(node->input(5));
        if (!training) refuse(node, "whether it normalises by the microbatch is computed");
        set_momentum(norm, node);
        add(norm, node);
        replace(node, jit_.parameters[static_cast<size_t>(norm.num_batches_tracked)].value);
    }

    void replace(Node* node, Value* count) {
        const torch::jit::WithInsertPoint here(node);
        Node* deferred = jit_.graph->insertNode(
            jit_.graph->create(deferred_kind(), {node->input(0), node->input(1), node->input(2), node->input(3),
                                                 node->input(4), count, node->input(7), node->input(8)}));
        deferred->copyMetadata(node);
        deferred->output()->copyMetadata(node->output());
        node->output()->replaceAllUsesWith(deferred->output());
        Node* momentum = node->input(6)->node();
        node->destroy();
        remove_idle(momentum);
    }

    /// The computation of a momentum that nobody needs any more.
    static void remove_idle(Node* node) {
        while (!node->hasUses() && (node->kind() == aten::div || node->kind() == aten::Float)) {
            Node* before = node->inputs().back()->node();
            node->destroy();
            node = before;
        }
    }

    void remove_increments(int counter) {
        Value* count = jit_.parameters[static_cast<size_t>(counter)].value;
        const auto remove_one = [count] {
            for (const torch::jit::Use& use : count->uses()) {
                if (!is_increment(use.user, count)) continue;
                use.user->output()->replaceAllUsesWith(count);
                use.user->destroy();
                return true;
            }
            return false;
        };
        while (remove_one()) continue;
    }

    void check_uses(int buffer) const {
        const JitParameter& parameter = jit_.parameters[static_cast<size_t>(buffer)];
        for (const torch::jit::Use& use : parameter.value->uses()) {
            if (use.user->kind() == deferred_kind()) continue;
            throw Error(ErrorKind::BadData,
                        op_text(jit_, use.user) + " uses the buffer '" + parameter.name +
                            "', which has no value between the microbatches of a step while its statistics are "
                            "deferred; leave pipeline.deferred_batch_norm out");
        }
    }

    JitGraph& jit_;
    std::unordered_map<const Value*, int> index_of_;
    std::vector<Node*> found_;
};

}  // namespace

void defer_batch_norms(JitGraph& jit) {
    Deferrer(jit).run();
}

}  // namespace vpp
