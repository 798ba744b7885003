#pragma once
// Inside the TorchScript reader: the prepared graph in LibTorch's form and what is known about its inputs. The passes
// (jit_inline, jit_attributes, jit_assigned_buffers, jit_freeze, jit_straighten, jit_device_answers, jit_loss,
// jit_batch_norm, jit_convolutions, jit_written_copies, jit_modes, jit_interleave, jit_constants, jit_numbers,
// jit_random, jit_alias, probe) each do one thing to it, in that order (graph/torchscript.cpp); jit_straighten has
// jit_constants, jit_unroll and jit_containers by turns.
#include <ATen/core/Tensor.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/ir.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "graph/deferred_batch_norm.hpp"
#include "plan/plan.hpp"

namespace vpp {

class AliasFacts;

/// A parameter or buffer as a graph input.
struct JitParameter {
    std::string name;
    std::vector<std::string> aliases;
    at::Tensor tensor;  ///< sizes, strides, dtype and storage identity are right; the bytes are not read
    bool is_buffer = false;
    torch::jit::Value* value = nullptr;  ///< the graph input; null when the graph does not use it
};

/// An argument of forward as a graph input.
struct JitInput {
    std::string name;
    torch::jit::Value* value = nullptr;
};

/// An output of forward that is kept beside the loss.
struct JitOutput {
    std::string name;
    torch::jit::Value* value = nullptr;
};

/// Which shapes a loss takes: scores of classes and targets, values that are spread over each other within a sample, or
/// each value with its own.
enum class ComparedShapes { Classes, SameSamples, Same };

/// What a loss of the plan's compares: the first two inputs of the op that gives the loss.
struct JitCompared {
    std::string kind;   ///< loss.kind
    std::string field;  ///< loss.target
    ComparedShapes shapes = ComparedShapes::Classes;
    bool as_rows = false;  ///< both were flattened before
};

/// What ops run under.
struct OpModes {
    bool grad = true;                        ///< gradients are recorded
    std::optional<at::ScalarType> autocast;  ///< what ops are cast to (graph/autocast.hpp)
    bool operator==(const OpModes&) const = default;
};

/// One op of the Graph: a top-level node, with whatever control flow is inside it.
struct JitOp {
    torch::jit::Node* node = nullptr;
    int written_at = 0;  ///< its place in the order of the model's own code
    OpModes modes{};
    bool random = false;       ///< it or a node inside it draws random numbers
    int64_t random_site = -1;  ///< its own call site; nodes inside blocks have theirs in the graph
};

struct JitGraph {
    std::shared_ptr<torch::jit::Graph> graph;
    std::vector<JitInput> inputs;
    std::vector<JitParameter> parameters;  ///< named_parameters() order, then buffers
    torch::jit::Value* loss = nullptr;
    std::optional<JitCompared> compared;   ///< none where the loss is the model's own
    std::vector<JitOutput> outputs;        ///< gathered into a tuple by the last op; empty unless asked for
    std::vector<JitOutput> tallies;        ///< behind them in that tuple: what accuracy is made of
    std::vector<std::string> not_kept;     ///< outputs that are no tensors: "output2 (List[int])"
    std::vector<JitOp> ops;                ///< top-level nodes that are not constants, in order
    std::set<std::string> reads_training;  ///< submodules whose training flag forward looks at
    std::vector<StagePlan> stages;         ///< what the graph was joined from; empty for one model
    std::vector<std::string> notes;        ///< for the log
    torch::jit::Value* counts = nullptr;   ///< inputs of the reseeds
    torch::jit::Value* key = nullptr;
    int64_t num_sites = 0;     ///< call sites of random ops
    OpModes modes;             ///< what an executable is started under, and ops are where the model's code says nothing
    bool casts = false;        ///< some ops are cast
    int64_t num_unrolled = 0;  ///< nodes that stand for loops
    std::vector<DeferredBatchNorm> deferred_batch_norms;
};

/// The FQN label of a node ("" for the root).
std::string module_of(const torch::jit::Node* node);
/// Sets the label.
void set_module(torch::jit::Node* node, const std::string& fqn);

/// A name as LibTorch takes it for a value: numbers, which it keeps for values without one, give "".
std::string value_name(const std::string& name);

/// A line of the model's code: of the exporter's source where the file tells it, else of the file's own code.
struct SourceLine {
    std::string file;
    size_t line = 0;
};
std::optional<SourceLine> source_line(const torch::jit::Node* node);

/// " at model.py:12"; empty where no file is known.
std::string line_text(const torch::jit::Node* node);

/// "the op aten::linear in 'head.fc' of the stage 'head' (head.pt) at model.py:12".
std::string op_text(const JitGraph& jit, const torch::jit::Node* node);

/// Copies forward with every call replaced by the callee's graph, each node labelled with the FQN of its submodule.
/// Throws Error{BadData} for calls that cannot be resolved.
std::shared_ptr<torch::jit::Graph> inline_with_labels(const torch::jit::Module& model);

/// Hooks of a module around forward are not in its graph; whoever calls forward from outside leaves them out.
/// Throws Error{BadData} naming `what` where there are some.
void refuse_hooks(const torch::jit::Module& module, const std::string& what);

/// For messages: "no method 'forward'" of one that lacks it, and what to do where it has several of them.
std::string no_forward_text(const torch::jit::Module& module);

/// Replaces every call in a graph whose first input is the model, with the same labels.
/// Throws Error{BadData} for calls that cannot be resolved.
void inline_calls(torch::jit::Graph& graph, const torch::jit::Module& model);

/// Which output is the loss, or how it is made.
struct LossChoice {
    std::optional<LossPlan> loss;    ///< ops to append; empty = forward returns the loss
    int output = 0;                  ///< the loss, or what the appended loss compares
    std::string reduction = "mean";  ///< of what is appended; with "target_mean" forward's own loss becomes a sum
    bool keep_outputs = false;       ///< append an op that gathers forward's other outputs
    bool count_hits = false;         ///< append ops that count targets and those of them that are the largest output
    bool of_probabilities = false;   ///< the target has one for each class
};

/// Makes the loss the graph's only output; with choice.loss its ops are appended with the label "loss", and its target
/// becomes an input unless it is one already. Where its classes lie along the last dimension, both are flattened to a
/// row for each target first. With keep_outputs the last op is a tuple of the tensors that forward returns beside the
/// loss, so that cuts, edges and stages know of them; without any there is no such op. With count_hits two numbers
/// follow in that tuple. Requires: with count_hits a loss whose targets are classes. Throws Error{BadData} when forward
/// has no such output.
void select_loss(JitGraph& jit, const LossChoice& choice);

/// Makes every batch norm that normalises by the microbatch and keeps running statistics a deferred one: the op
/// vpp::deferred_batch_norm normalises with the microbatch's own statistics and adds up sums; the increments of
/// num_batches_tracked go. What is done at the end of a step: stage/batch_statistics.hpp. Batch norm that keeps no
/// statistics, or none in this mode, stays as it is; so does instance_norm, which is no batch norm.
/// Throws Error{BadData}, naming op, submodule and line, for one that cannot be deferred: its statistics are no
/// buffers, have no num_batches_tracked beside them, or are used by other ops; its momentum is computed; another kernel
/// than aten::batch_norm.
void defer_batch_norms(JitGraph& jit);

/// Lets a cut lie behind the ops that write in place what comes from outside: an argument of forward that is written
/// anywhere is copied before its first use, and all use the copy; a small buffer without a gradient is copied behind
/// its last write, and who reads it later reads the copy, unless other values of its memory are used there too. A copy
/// has the same bytes and gives gradients on as they come, so no bit changes.  Requires: constants are folded.
void copy_written(JitGraph& jit);

/// Finds what each op runs under where the model's code says so: in `with torch.no_grad()`, behind
/// torch.set_grad_enabled(...), in `with torch.autocast(...)` that names `device`. What said it leaves the graph, so a
/// cut may lie between; at the top level each op knows its modes, and inside of blocks the op vpp::set_modes stands
/// where they change. Weights are cast anew at each use (graph/autocast.hpp), whatever cache_enabled says. Lists the
/// ops. Requires: jit.modes is set, constants are folded, and only insert_reseeds changes the graph behind it. Throws
/// Error{BadData}, naming op and line: modes that follow the data, or that a branch or loop leaves changed.
void find_modes(JitGraph& jit, at::DeviceType device);

/// A node that sets what the ops behind it run under, not yet inserted. It names the device whose casts it sets.
torch::jit::Node* make_set_modes(torch::jit::Graph& graph, const OpModes& modes);

/// Which inputs of an op autocast casts, whatever they are, and are inputs of the graph: weights, or data. In the order
/// in which autocast casts them, the last one first, as gradients of what is there twice are added in that order; one
/// that has another tensor behind it is not among them, as that would be cast too late.
std::vector<size_t> cast_inputs(const JitGraph& jit, const JitOp& op);

/// A node that gives such a weight cast, where there is a copy of it (graph/weight_casts.hpp); not yet inserted.
torch::jit::Node* make_cast_weight(torch::jit::Graph& graph, torch::jit::Value* weight, at::ScalarType dtype);

/// Where a module that uses buffers is called more than once, and no call uses what another made, puts the ops of its
/// calls beside each other: first op by first op, and so on, so that a cut has what all calls do to a buffer on one
/// side. What an op needs comes before it. No bit changes: ops that touch memory which is written, and those whose
/// parts of a gradient are summed, keep their order. All other models stay as they are.  Requires: jit.ops is listed.
void interleave_calls(JitGraph& jit);

/// Numbers the call sites of random ops over the whole graph, in the order of the model's code, and puts a reseed
/// before each: the op vpp::reseed sets LibTorch's default generator from (key, site, execution count). Adds two inputs
/// behind all others: key (int) and counts (int64 tensor with one element a site). A top-level op only notes its site:
/// its reseed is put in when it is compiled.  Requires: jit.ops is listed.
void insert_reseeds(JitGraph& jit);

/// A reseed node of one site, not yet inserted. It names the device whose generator it sets (the CPU's too):
/// graph/jit_device.hpp.
torch::jit::Node* make_reseed(torch::jit::Graph& graph, torch::jit::Value* counts, torch::jit::Value* key,
                              int64_t site);

/// Lists the ops of the graph, which must not change any more.
/// Throws Error{BadData}, naming op and line, for tensor.backward() and tensor.grad.
void list_ops(JitGraph& jit);

/// Whether the node is this op ("aten::grad").
bool is_op(const torch::jit::Node* node, const char* name);

/// Visits the node and then those inside it.
template <typename Visit>
void for_each_node(torch::jit::Node* node, const Visit& visit) {
    visit(node);
    for (torch::jit::Block* block : node->blocks()) {
        for (torch::jit::Node* inner : block->nodes()) for_each_node(inner, visit);
    }
}

/// Whether that holds for the node or for one inside of its blocks.
template <typename Holds>
bool any_node(const torch::jit::Node* node, const Holds& holds) {
    if (holds(node)) return true;
    for (const torch::jit::Block* block : node->blocks()) {
        for (const torch::jit::Node* inner : block->nodes()) {
            if (any_node(inner, holds)) return true;
        }
    }
    return false;
}

/// The node, or the first one inside of its blocks, that is one of these ops ("aten::grad"); null where there is none.
const torch::jit::Node* find_op(const torch::jit::Node* node, const std::set<std::string_view>& kinds);

/// The op's argument of that name; null where it has none.
const torch::jit::Value* argument_named(const torch::jit::Node* node, const char* name);

/// Whether forward itself takes gradients in it, by torch.autograd.grad.
bool takes_gradients(const torch::jit::Node* node);

/// Every value from outside that a node uses, its blocks included; each once, in order of use. Constants and what only
/// reseeds use are left out.
std::vector<torch::jit::Value*> values_used(torch::jit::Node* node);

/// Makes an input of the graph a constant.
/// Requires: the graph refers to no module any more, so that its inputs are forward's arguments.
void bind_default(torch::jit::Graph& graph, size_t index, const c10::IValue& value);

/// Answers `value is None` and `isinstance(value, ...)` where the type says it, so that branches for absent arguments,
/// and for other ones, fold away. Gives whether something was answered.
bool fold_type_checks(torch::jit::Block* block);

/// Evaluates what depends on constants only, takes tuples apart that are unpacked where they are made (LibTorch's alias
/// analysis takes all that is in one for one memory), and removes dead code.
void fold_constants(JitGraph& jit);

/// Gives each op that takes a constant tensor a tensor of its own over the same memory: an op may give it on (a cast to
/// what it is, a list of it), and on two sides of a cut it would not be the one tensor that both ops gave.
/// Requires: jit.ops is listed.
void separate_constants(JitGraph& jit);

/// Throws Error{BadData}, naming op and line, where forward writes into a constant tensor or a view of one: what is
/// written would be of this process alone, not in checkpoints, not on the other side of a cut.
void check_constants(const JitGraph& jit, const AliasFacts& aliases);

/// Gives every aten::_convolution of a traced model the name of the op that the model called (aten::conv2d, ...): the
/// same arithmetic, by this machine's settings, and autocast knows it.  Requires: constants are folded. One with
/// unknown strides stays.
void name_convolutions(JitGraph& jit);

/// Replaces loops of the top level that run a known number of times by their ops, once for each time, as long as
/// that adds up to 10,000 nodes of a model at most.  Requires: constants are folded.
void unroll_loops(JitGraph& jit);

/// Makes lists and dicts that change values that do not: where an element is appended, put in, set or taken out, at the
/// top level and at a place that is known, or a list turned round, what reads it behind that gets the element itself or
/// a new container of what is in it. From an op on that changes it in another way (in a branch or loop, at a place that
/// follows the data), or changes it while another container or a block holds it, it is one container that changes in
/// place. Gives whether something was settled, or read from a list that never changes. Requires: constants are folded.
bool settle_containers(JitGraph& jit);

/// Makes straight code of branches, loops and lists, by the three passes above and fold_constants until nothing
/// changes: how often a loop runs may follow from what a list holds, and that from another loop.
void straighten(JitGraph& jit);

/// Answers what a model asks of the device of its tensors (y.is_cuda, y.device.type, x.device == y.device) as they are
/// on `target`, where it will run, and straightens the graph behind that: ops are tried elsewhere (probe.hpp), where a
/// branch would go another way. What may lie on the host beside a card has no answer, nor has the number of a card;
/// such a branch follows the data. Gives the graph's text as it was before, the same for all devices; empty where
/// nothing is asked. Requires: the graph is straightened.
std::string answer_devices(JitGraph& jit, at::DeviceType target);

/// Puts an op before `place` that gives a copy of a buffer which forward assigns, or one that assigns it under the name
/// of its attribute.
torch::jit::Value* insert_reading(torch::jit::Node* place, torch::jit::Value* buffer);
void insert_assignment(torch::jit::Node* place, torch::jit::Value* buffer, torch::jit::Value* value,
                       const std::string& name);

/// Throws Error{BadData}, naming op and line, where something writes in place into what a buffer that forward assigns
/// has before or behind that.
void check_assigned_buffers(const JitGraph& jit, const AliasFacts& aliases);

/// Turns attributes into inputs (tensors) and constants (the rest).
/// Requires: graph comes from inline_with_labels of the same model.
/// Throws Error{BadData}: attributes written by forward, modules used as values.
void resolve_attributes(JitGraph& jit, const torch::jit::Module& model);

}  // namespace vpp
