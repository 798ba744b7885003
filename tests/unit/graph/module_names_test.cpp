// Names are counted, not gone through.
#include "graph/module_names.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "unit/graph/models.hpp"

namespace vpp {
namespace {

using ::testing::HasSubstr;
using torch::jit::Module;

Module empty_module() {
    static const auto unit = std::make_shared<torch::jit::CompilationUnit>();
    return Module(c10::QualifiedName("__torch__.Model"), unit, /*shouldMangle=*/true);
}

/// A module around another, which has `num_places` names in it.
Module around(const Module& inner, int num_places) {
    Module outer = empty_module();
    for (int i = 0; i < num_places; ++i) outer.register_module("m" + std::to_string(i), inner);
    return outer;
}

/// 2^depth names for the innermost.
Module doubled(int depth) {
    Module module = empty_module();
    for (int i = 0; i < depth; ++i) module = around(module, 2);
    return module;
}

std::string refusal_of(const Module& module) {
    return test::refusal(ErrorKind::BadData, [&] { check_module_names(module, "model.pt"); });
}

TEST(ModuleNames, ALayerThatIsUsedAHundredTimesIsFine) {
    Module layer = empty_module();
    for (int i = 0; i < 200; ++i) layer.register_attribute("a" + std::to_string(i), c10::IntType::get(), i);
    EXPECT_NO_THROW(check_module_names(around(layer, 100), "model.pt"));
}

TEST(ModuleNames, ManyModulesOfOneNameAreFine) {
    Module model = empty_module();
    for (int i = 0; i < 100; ++i) {
        Module layer = empty_module();
        for (int k = 0; k < 100; ++k) layer.register_attribute("a" + std::to_string(k), c10::IntType::get(), k);
        model.register_module("m" + std::to_string(i), layer);
    }
    EXPECT_NO_THROW(check_module_names(around(model, 10), "model.pt"));
}

TEST(ModuleNames, SharedModulesInsideOfSharedOnesAreRefused) {
    EXPECT_NO_THROW(check_module_names(doubled(12), "model.pt"));
    EXPECT_THAT(refusal_of(doubled(17)),
                HasSubstr("model.pt: submodules that stand in several places give its attributes more than 100000"));
    EXPECT_THAT(refusal_of(doubled(500)), HasSubstr("more than 100000 further names")) << "more than a number holds";
}

TEST(ModuleNames, ModulesThatAreNestedTooDeepAreRefused) {
    Module module = empty_module();
    for (int i = 0; i < 1000; ++i) module = around(module, 1);
    EXPECT_NO_THROW(check_module_names(module, "model.pt"));
    EXPECT_THAT(refusal_of(around(module, 1)), HasSubstr("model.pt: its modules are nested deeper than 1000"));
}

}  // namespace
}  // namespace vpp
