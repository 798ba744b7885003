#pragma once
// A model as plain values: ops in execution order, the values between them, the tensors those hold, parameters, and
// which boundaries between ops are legal cuts. No torch types: a reader of another model format gives the same Graph.
//
// A *value* is a name in the graph; a *tensor* is one object at run time. Several values may hold the same tensor (an
// in-place result, a no-op view), and a value may hold several (a list). Gradients belong to tensors.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/dtype.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "graph/deferred_batch_norm.hpp"

namespace vpp {

/// One tensor object of the model, for one microbatch.
struct GraphTensor {
    std::string name;          ///< of the first value that holds it
    DType dtype = DType::F32;  ///< of its parts where it is complex
    std::vector<int64_t> shape;
    bool requires_grad = false;       ///< when its producer has made it; behind a branch: in some microbatch it may
    int64_t message_bytes = 0;        ///< of a message that carries it; its bound where shapes do not follow the data
    int producer = kFromOutside;      ///< op; kFromOutside for model inputs and parameters
    int input = -1;                   ///< which model input it is, else -1
    int parameter = -1;               ///< which parameter or buffer it is, else -1
    std::vector<int> writers;         ///< ops that may write its memory in place, ascending; not its producer
    std::vector<int> gradient_flips;  ///< ops that change in place whether it requires a gradient, ascending
    bool is_view = false;             ///< autograd knows it as a part of another tensor, of one inside of an op too
    bool fills_memory = true;         ///< its memory holds nothing else
    bool travels = true;              ///< false: no message holds it (sparse, quantised, negated when read)
    bool is_complex = false;
    bool from_branch = false;  ///< made by control flow that follows the data: it may be another tensor, or not

    static constexpr int kFromOutside = -1;
    int64_t bytes() const { return num_elements(shape) * static_cast<int64_t>(size_of(dtype)) * (is_complex ? 2 : 1); }
    std::string type_text() const;  ///< "float32[2, 3]", "complex64[4]"
    /// Whether it requires a gradient when op `op` takes it.
    bool requires_grad_at(int op) const;
};

/// One value of the graph.
struct GraphValue {
    std::string name;          ///< as in the printed graph, without '%'
    std::string type;          ///< "Tensor", "int", "List[Tensor]", ...
    bool is_tensor = false;    ///< holds exactly one tensor and nothing else
    std::vector<int> tensors;  ///< the tensors in it, in the order of a walk through it
    int producer = -1;         ///< op; -1 for model inputs and parameters
    std::vector<int> uses;     ///< ops, ascending
    int64_t plain_bytes = 0;   ///< about what it holds beside tensors
};

/// A tensor of integers by which an op chooses along a dimension of constant size.
struct GraphIndex {
    int value = -1;
    int64_t least = 0;  ///< below 0 where it may count from the end
    int64_t size = 0;   ///< of the dimension

    bool operator==(const GraphIndex&) const = default;
};

/// One op: a node of the graph, with the control flow inside it if it has any.
struct GraphOp {
    std::string kind;             ///< "aten::linear"
    std::string module;           ///< FQN of the submodule that owns it; "" = the root; "loss" = appended by [loss]
    std::vector<int> inputs;      ///< values, parameters among them
    std::vector<int> outputs;     ///< values
    std::vector<int> parameters;  ///< parameters and buffers it uses
    std::vector<int> casts;       ///< those of them that it takes in half precision, from a copy for all microbatches
    double flops = 0;             ///< forward, one microbatch
    int64_t kept_bytes = 0;       ///< made in a microbatch and there until its backward, which reads it
    int64_t inner_bytes = 0;      ///< made in it, there behind it and none of its outputs
    int64_t passing_bytes = 0;    ///< there behind it, of all that ops have made, and gone before the forward ends
    bool random = false;          ///< draws random numbers (keyed by its call site)
    std::vector<GraphIndex> indices;       ///< of gather, index_select and x[index]
    std::vector<int64_t> ignored_targets;  ///< ignore_index of a loss of classes; empty where it is no constant

    /// Whether it is a loss of classes, inputs[1], and its ignore_index is known.
    bool counts_classes() const;
};

/// A parameter or buffer under its canonical name: the first in the model's named_parameters() order.
struct GraphParameter {
    std::string name;
    std::vector<std::string> aliases;  ///< other names of the same tensor
    DType dtype = DType::F32;
    std::vector<int64_t> shape;
    bool is_buffer = false;  ///< not in parameters(); requires no gradient
    bool requires_grad = false;
    bool written = false;   ///< some op writes it (batch statistics)
    std::vector<int> uses;  ///< ops that use it or a no-op view of it, ascending
    bool has_data = true;   ///< the model file has its values

    int64_t bytes() const { return num_elements(shape) * static_cast<int64_t>(size_of(dtype)); }
    /// Of a copy in half precision.
    int64_t cast_bytes() const { return num_elements(shape) * 2; }
};

/// A submodule, for units: FQN and class name without mangling.
struct GraphModule {
    std::string name;
    std::string class_name;
};

/// Whether a module's FQN is `outer` or that of a submodule of it.
bool lies_in(const std::string& module, const std::string& outer);

/// Whether the model may be cut before an op, and why not.
struct GraphCut {
    bool legal = true;
    std::string reason;  ///< empty when legal
};

/// One argument of the model's forward.
struct GraphInput {
    std::string name;  ///< data field
    int value = -1;    ///< -1 when the model does not use it
};

/// An output of forward that is a tensor and not the loss.
struct GraphOutput {
    std::string name;  ///< its name in a NamedTuple, else "output0" and so on by its place
    int tensor = -1;
};

struct Graph {
    std::vector<GraphOp> ops;
    std::vector<GraphValue> values;
    std::vector<GraphTensor> tensors;
    std::vector<GraphParameter> parameters;  ///< parameters in named_parameters() order, then buffers
    std::vector<GraphModule> modules;        ///< in the order of registration, parents first
    std::vector<GraphInput> inputs;
    int loss = -1;                     ///< value
    std::vector<GraphOutput> outputs;  ///< where asked for: the last op gathers them into one tuple, in this order
    /// Where asked for, behind the outputs in that tuple: of a microbatch how many targets count, and how many of them
    /// are the largest output.
    std::vector<GraphOutput> tallies;
    std::vector<GraphCut> cuts;         ///< cuts[i]: between op i-1 and op i; cuts[0] is unused
    Digest digest;                      ///< graph text; name, size and CRC of every weight record
    bool shapes_follow_data = false;    ///< a microbatch may give tensors other shapes than those that are written here
    std::vector<std::string> warnings;  ///< for the log

    /// Where asked for; one entry a module, in the order of their ops.
    std::vector<DeferredBatchNorm> deferred_batch_norms;

    int num_ops() const { return static_cast<int>(ops.size()); }
    /// The one tensor that a value is; null where it is something else.
    const GraphTensor* tensor_of(int value) const;
    /// Legal and refused cuts among the num_ops() - 1 positions.
    int num_legal_cuts() const;
    /// The reason that stands at most of the refused ones, and at how many; the first of several. Empty, 0: at none.
    std::pair<std::string, int> commonest_refusal() const;
};

/// How an op is told to a user: "op 23 (prim::If of 'l.0')".
std::string numbered_op_text(const Graph& graph, int op);

/// Throws Error{BadData} at `where` of a model without parameters, of which nothing can be trained.
void check_has_parameters(const Graph& graph, const std::optional<SourcePosition>& where = std::nullopt);

}  // namespace vpp
