// Buffers that forward assigns, as in self.mean = 0.9 * self.mean + 0.1 * x.mean(0). In Python the model has another
// tensor then, and whoever read the buffer before keeps the old one. Here the buffer stays and takes the new values,
// and each reading is a copy. That is the same as long as nobody writes into what was read or assigned.
#include <ATen/core/grad_mode.h>
#include <torch/library.h>

#include "base/error.hpp"
#include "graph/jit_alias.hpp"
#include "graph/jit_graph.hpp"

namespace vpp {

using torch::jit::Node;
using torch::jit::Value;

namespace {

at::Tensor read_buffer(const at::Tensor& buffer) {
    return buffer.clone();
}

/// Whether what reads the one does the same with the other, bit for bit.
bool are_alike(const at::Tensor& a, const at::Tensor& b) {
    if (a.dtype() != b.dtype() || a.sizes() != b.sizes()) return false;
    for (int64_t dim = 0; dim < a.dim(); ++dim) {
        if (a.size(dim) > 1 && a.stride(dim) != b.stride(dim)) return false;
    }
    return true;
}

/// `name` is that of the attribute: a buffer, or a plain one, which the file does not tell from it.
at::Tensor assign_buffer(at::Tensor buffer, const at::Tensor& value, c10::string_view name) {
    TORCH_CHECK(!value.requires_grad(), "the model assigns self.", name,
                " a tensor with a gradient, and the next microbatch would go on with it; assign value.detach()");
    TORCH_CHECK(are_alike(value, buffer), "the model assigns self.", name,
                " a tensor that has another dtype, shape or memory layout (", value.toString(), value.sizes(),
                ", before ", buffer.toString(), buffer.sizes(),
                "), and a buffer or other tensor that goes on to the next microbatch keeps its own; begin with that "
                "form, or keep it in a variable of forward");
    const at::NoGradGuard no_grad;
    return buffer.copy_(value);
}

TORCH_LIBRARY_FRAGMENT(vpp, library) {
    library.def(torch::schema("vpp::read_buffer(Tensor buffer) -> Tensor", c10::AliasAnalysisKind::FROM_SCHEMA),
                read_buffer);
    library.def(torch::schema("vpp::assign_buffer(Tensor(a!) buffer, Tensor value, str name) -> Tensor(a!)",
                              c10::AliasAnalysisKind::FROM_SCHEMA),
                assign_buffer);
}

c10::Symbol reading() {
    return c10::Symbol::fromQualString("vpp::read_buffer");
}

c10::Symbol assigning() {
    return c10::Symbol::fromQualString("vpp::assign_buffer");
}

Value* insert_before(Node* place, c10::Symbol kind, at::ArrayRef<Value*> inputs) {
    Node* node = place->owningGraph()->create(kind, inputs);
    node->insertBefore(place);
    node->copyMetadata(place);
    node->output()->setType(c10::TensorType::get());
    return node->output();
}

/// ", by the op aten::mul_ in 'encoder' at model.py:12": the first one that may write the value.
std::string writer_text(const JitGraph& jit, const AliasFacts& aliases, const Value* value) {
    std::string text;
    for (Node* top : jit.graph->nodes()) {
        for_each_node(top, [&](const Node* node) {
            if (!text.empty() || !node->blocks().empty() || !aliases.may_write(node, value)) return;
            text = ", by " + op_text(jit, node);
        });
    }
    return text;
}

}  // namespace

Value* insert_reading(Node* place, Value* buffer) {
    return insert_before(place, reading(), {buffer});
}

void insert_assignment(Node* place, Value* buffer, Value* value, const std::string& name) {
    const torch::jit::WithInsertPoint here(place);
    Value* assigned = insert_before(place, assigning(), {buffer, value, place->owningGraph()->insertConstant(name)});
    assigned->node()->setSourceRange(value->node()->sourceRange());  // the place itself has no line
}

void check_assigned_buffers(const JitGraph& jit, const AliasFacts& aliases) {
    for (Node* top : jit.graph->nodes()) {
        for_each_node(top, [&](const Node* node) {
            const bool assigns = node->kind() == assigning();
            if (!assigns && node->kind() != reading()) return;
            const Value* value = assigns ? node->input(1) : node->output();
            if (!aliases.has_writers(value)) return;
            throw Error(ErrorKind::BadData, "forward assigns the buffer '" + node->input(0)->debugName() +
                                                "', and elsewhere writes in place into what it has or gets" +
                                                writer_text(jit, aliases, value) +
                                                "; write it in place everywhere, with copy_");
        });
    }
}

}  // namespace vpp
