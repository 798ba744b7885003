// Ops run one by one; what they give through a whole probe: probe_test.cpp.
#include "graph/op_trial.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/ir/irparser.h>

#include <map>
#include <string>
#include <unordered_map>

#include "unit/graph/models.hpp"

namespace vpp {
namespace {

using namespace test;
using ::testing::HasSubstr;

class OnTrial : public ::testing::Test {
  protected:
    /// Runs a graph of x: [3, 4] and what `others` name; gives the ranges in which its ops were run.
    std::vector<std::pair<int, int>> run(const std::string& text, at::Device device = at::kMeta,
                                         const std::map<std::string, at::Tensor>& others = {}) {
        jit_.graph = std::make_shared<torch::jit::Graph>();
        torch::jit::parseIR(text, jit_.graph.get(), names_);
        list_ops(jit_);
        if (names_.contains("x"))
            values_[names_.at("x")] = at::ones({3, 4}, at::TensorOptions().device(device)).requires_grad_();
        for (const auto& [name, tensor] : others) values_[names_.at(name)] = tensor;
        OpTrial trial(jit_, {device, device, at::kCPU});
        std::vector<std::pair<int, int>> ranges;
        for (int i = 0; i < static_cast<int>(jit_.ops.size()); i = ranges.back().second) {
            const OpRange range = trial.run(i, values_);
            ranges.emplace_back(range.begin, range.end);
        }
        return ranges;
    }
    /// The op fails on the meta device, which says nothing of the CPU.
    void expect_left_to_the_cpu(const std::string& text, const std::string& op,
                                const std::map<std::string, at::Tensor>& others = {}) {
        try {
            run(text, at::kMeta, others);
            ADD_FAILURE() << "the meta device cannot";
        } catch (const FailsAnywhere&) {
            ADD_FAILURE() << "the CPU may";
        } catch (const Error& error) {
            EXPECT_THAT(error.what(), HasSubstr(op));
        }
    }
    const at::Tensor& at(const std::string& name) const { return values_.at(names_.at(name)).toTensor(); }

    JitGraph jit_;
    std::unordered_map<std::string, torch::jit::Value*> names_;
    TrialValues values_;
};

TEST_F(OnTrial, OneOpAfterAnother) {
    const auto ranges = run(R"IR(
graph(%x : Tensor):
  %y : Tensor = aten::sin(%x)
  %z : Tensor = aten::t(%y)
  return (%z))IR");
    EXPECT_EQ(ranges, (std::vector<std::pair<int, int>>{{0, 1}, {1, 2}}));
    EXPECT_EQ(at("z").sizes(), (std::vector<int64_t>{4, 3}));
    EXPECT_TRUE(at("z").is_meta());
}

TEST_F(OnTrial, OnTheCpuItComputes) {
    run(R"IR(
graph(%x : Tensor):
  %y : Tensor = aten::neg(%x)
  return (%y))IR",
        at::kCPU);
    EXPECT_EQ(at("y").sum().item<float>(), -12);
}

TEST_F(OnTrial, AnOpThatFailsIsNamed) {
    const auto text = refusal(ErrorKind::BadData, [&] {
        run(R"IR(
graph(%x : Tensor):
  %y : Tensor = aten::mm(%x, %x)
  return (%y))IR");
    });
    EXPECT_THAT(text, HasSubstr("the op aten::mm"));
}

TEST_F(OnTrial, WhatWouldFailOnTheCpuTooIsToldApart) {
    EXPECT_THROW(run("graph(%x : Tensor):\n  %y : Tensor = aten::mm(%x, %x)\n  return (%y)"), FailsAnywhere);
}

TEST_F(OnTrial, WhatNeedsNumbersFailsHereAlone) {
    expect_left_to_the_cpu("graph(%x : Tensor):\n  %y : Tensor = aten::nonzero(%x)\n  return (%y)", "aten::nonzero");
}

// Over zeros a branch goes another way, and a loop may have no end.
TEST_F(OnTrial, WhatFollowsNumbersIsNotTriedOverZeros) {
    expect_left_to_the_cpu(R"IR(
graph(%x : Tensor):
  %none : NoneType = prim::Constant()
  %half : float = prim::Constant[value=0.5]()
  %many : int = prim::Constant[value=9223372036854775807]()
  %yes : bool = prim::Constant[value=1]()
  %grown : Tensor = prim::Loop(%many, %yes, %x)
    block0(%i : int, %h : Tensor):
      %y : Tensor = aten::add(%h, %h, %i)
      %s : Tensor = aten::sum(%y, %none)
      %small : Tensor = aten::lt(%s, %half)
      %again : bool = aten::Bool(%small)
      -> (%again, %y)
  return (%grown))IR",
                           "aten::Bool");
}

TEST_F(OnTrial, WhatHasNoZerosIsLeftToTheCpu) {
    const at::Tensor sparse = at::empty({3, 4}, at::TensorOptions().device(at::kMeta).layout(at::kSparseCsr));
    expect_left_to_the_cpu("graph(%x : Tensor, %s : Tensor):\n  %y : Tensor = aten::mm(%s, %x)\n  return (%y)",
                           "aten::mm", {{"s", sparse}});
}

TEST_F(OnTrial, ANestedTensorIsRefused) {
    EXPECT_THAT(refusal(ErrorKind::BadData,
                        [&] {
                            run("graph(%r : Tensor, %m : Tensor):\n  %yes : bool = prim::Constant[value=1]()\n"
                                "  %y : Tensor = aten::_nested_tensor_from_mask(%r, %m, %yes)\n  return (%y)",
                                at::kCPU, {{"r", at::ones({3, 4, 2})}, {"m", at::ones({3, 4}, at::kBool)}});
                        }),
                HasSubstr("the op aten::_nested_tensor_from_mask in the model's forward gives a nested tensor, which "
                          "has no shape and is not supported; make nn.TransformerEncoder with "
                          "enable_nested_tensor=False, or use padding and a mask"));
}

TEST_F(OnTrial, WhatIsMadeOfAListOfABranchMayNeedAGradient) {
    const std::string text = R"IR(
graph(%x : Tensor, %y : Tensor):
  %none : NoneType = prim::Constant()
  %zero : int = prim::Constant[value=0]()
  %sum : Tensor = aten::sum(%y, %none)
  %flag : bool = aten::Bool(%sum)
  %list : Tensor[] = prim::If(%flag)
    block0():
      %one : Tensor[] = prim::ListConstruct(%y)
      -> (%one)
    block1():
      %other : Tensor[] = prim::ListConstruct(OTHER)
      -> (%other)
  %pair : (Tensor[], int) = prim::TupleConstruct(%list, %zero)
  %same : Tensor[], %n : int = prim::TupleUnpack(%pair)
  %whole : Tensor = aten::cat(%same, %zero)
  return (%whole))IR";
    const std::map<std::string, at::Tensor> plain{{"y", at::ones({3, 4})}};
    run(std::string(text).replace(text.find("OTHER"), 5, "%x"), at::kCPU, plain);
    EXPECT_TRUE(at("whole").requires_grad()) << "another microbatch goes the other way";
    run(std::string(text).replace(text.find("OTHER"), 5, "%y, %y"), at::kCPU, plain);
    EXPECT_FALSE(at("whole").requires_grad());
}

TEST_F(OnTrial, WhatMayWriteIsKnown) {
    run(R"IR(
graph(%x : Tensor):
  %y : Tensor = aten::sin(%x)
  %z : Tensor = aten::relu_(%y)
  return (%z))IR");
    EXPECT_FALSE(may_write_inputs(jit_.ops[0].node));
    EXPECT_TRUE(may_write_inputs(jit_.ops[1].node));
}

}  // namespace
}  // namespace vpp
