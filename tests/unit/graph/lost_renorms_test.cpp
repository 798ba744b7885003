#include "graph/lost_renorms.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vpp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using torch::jit::Module;

Module embedding(const std::string& class_name, const c10::IValue& max_norm) {
    Module module(c10::QualifiedName("__torch__." + class_name));
    module.type()->addConstant("max_norm", max_norm);
    return module;
}

TEST(LostRenorms, EmbeddingsWithANormAreNamed) {
    Module root(c10::QualifiedName("__torch__.Model"));
    root.register_module("plain", embedding("torch.nn.modules.sparse.Embedding", {}));
    root.register_module("own", embedding("layers.Embedding", 0.5));
    JitGraph jit;
    add_lost_renorms(jit, root);
    EXPECT_TRUE(jit.notes.empty());
    root.register_module("words", embedding("torch.nn.modules.sparse.___torch_mangle_3.Embedding", 0.5));
    root.register_module("bag", embedding("torch.nn.modules.sparse.EmbeddingBag", 1.0));
    add_lost_renorms(jit, root);
    EXPECT_THAT(jit.notes, ElementsAre(HasSubstr("torch.jit.script leaves max_norm out, so rows keep the norm that "
                                                 "training gives them, other than in Python: words, bag;")));
}

}  // namespace
}  // namespace vpp
