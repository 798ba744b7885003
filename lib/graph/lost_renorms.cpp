#include "graph/lost_renorms.hpp"

#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/few.hpp"

namespace vpp {

namespace {

/// A traced one has no such attribute, and its graph the op.
bool has_lost_renorm(const torch::jit::Module& module) {
    const std::string name = module.type()->name()->qualifiedName();
    if (name.find("torch.nn.modules.sparse.") == std::string::npos) return false;
    return module.hasattr("max_norm") && module.attr("max_norm").isDouble();
}

}  // namespace

void add_lost_renorms(JitGraph& jit, const torch::jit::Module& root) {
    std::vector<std::string> names;
    for (const auto& module : root.named_modules()) {
        if (has_lost_renorm(module.value)) names.push_back(printable(module.name));
    }
    if (names.empty()) return;
    jit.notes.push_back(
        "torch.jit.script leaves max_norm out, so rows keep the norm that training gives them, other than in Python: " +
        few_text(names, 6) + "; normalize what they give in forward where that is meant");
}

}  // namespace vpp
