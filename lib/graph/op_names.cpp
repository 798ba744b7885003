#include "graph/op_names.hpp"

#include <memory>

#include "base/error.hpp"

namespace vpp {

namespace {

/// In front of a name, which has a line of its own in what the interpreter says.
constexpr std::string_view kMark = "vpp: ";

}  // namespace

void name_op(const JitGraph& jit, const torch::jit::Node* op, torch::jit::Node* running) {
    if (op->kind() == torch::jit::aten::warn) return;  // its place goes with the warning
    const std::string name = std::string(kMark) + op_text(jit, op) + "\n";
    const auto source = std::make_shared<torch::jit::Source>(name);
    running->setSourceRange(torch::jit::SourceRange(source, 0, name.size()));
    check(op->blocks().size() == running->blocks().size(), "a clone has the blocks of its original");
    for (size_t i = 0; i < op->blocks().size(); ++i) {
        auto inner = running->blocks()[i]->nodes().begin();
        for (const torch::jit::Node* node : op->blocks()[i]->nodes()) name_op(jit, node, *inner++);
    }
}

std::string failed_op(std::string_view error) {
    const size_t marked = error.find(kMark);
    if (marked == std::string_view::npos) return "";
    error.remove_prefix(marked + kMark.size());
    return std::string(error.substr(0, error.find('\n')));
}

}  // namespace vpp
