// Ops that take copies of weights: under every list of LibTorch they have to be ops that it casts.
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/jit/ir/irparser.h>

#include "graph/card_autocast.hpp"
#include "graph/jit_executable.hpp"
#include "graph/weight_casts.hpp"
#include "unit/graph/models.hpp"

namespace vpp {
namespace {

using namespace test;
using ::testing::ElementsAre;

struct OneOp {
    JitGraph jit;
    std::vector<torch::jit::Value*> inputs, outputs;

    OneOp(const std::string& call, std::optional<at::ScalarType> dtype = at::kBFloat16,
          const std::string& before = "") {
        jit.graph = std::make_shared<torch::jit::Graph>();
        torch::jit::parseIR(
            "graph(%x : Tensor, %y : Tensor):\n"
            "  %one : int = prim::Constant[value=1]()\n"
            "  %none : NoneType = prim::Constant()\n"
            "  %ones : int[] = prim::ListConstruct(%one)\n"
            "  %zero : int = prim::Constant[value=0]()\n"
            "  %zeros : int[] = prim::ListConstruct(%zero)\n"
            "  %same : str = prim::Constant[value=\"same\"]()\n"
            "  %float : int = prim::Constant[value=6]()\n" +
                before + "  %out : Tensor = " + call + "\n  return (%out)",
            jit.graph.get());
        jit.modes.autocast = dtype;
        list_ops(jit);
        for (JitOp& op : jit.ops) op.modes = jit.modes;
        inputs = {jit.graph->inputs()[0], jit.graph->inputs()[1]};
        outputs = {jit.graph->outputs()[0]};
    }

    std::unique_ptr<Executable> compiled() {
        return compile_ops(jit, OpRange{0, static_cast<int>(jit.ops.size())}.list(), inputs, outputs, at::kCPU,
                           jit.modes.autocast);
    }
    std::vector<size_t> cast() const { return cast_inputs(jit, jit.ops.back()); }
};

struct Case {
    const char* call;
    std::vector<int64_t> x, y;
};

const std::vector<Case> kCases{
    {"aten::linear(%x, %y, %none)", {2, 4}, {4, 4}},
    {"aten::matmul(%x, %y)", {2, 4}, {4, 4}},
    {"aten::mm(%x, %y)", {2, 4}, {4, 4}},
    {"aten::bmm(%x, %y)", {1, 2, 4}, {1, 4, 4}},
    {"aten::addmm(%x, %x, %y, %one, %one)", {4, 4}, {4, 4}},
    {"aten::baddbmm(%x, %x, %y, %one, %one)", {1, 4, 4}, {1, 4, 4}},
    {"aten::addbmm(%x, %y, %y, %one, %one)", {4, 4}, {1, 4, 4}},
    {"aten::conv1d(%x, %y, %none, %ones, %zeros, %ones, %one)", {1, 2, 4}, {2, 2, 1}},
    {"aten::conv1d(%x, %y, %none, %ones, %same, %ones, %one)", {1, 2, 4}, {2, 2, 3}},
    {"aten::conv2d(%x, %y, %none, %ones, %zeros, %ones, %one)", {1, 2, 4, 4}, {2, 2, 1, 1}},
    {"aten::conv3d(%x, %y, %none, %ones, %zeros, %ones, %one)", {1, 2, 4, 4, 4}, {2, 2, 1, 1, 1}},
    {"aten::conv_transpose1d(%x, %y, %none, %ones, %zeros, %zeros, %one, %ones)", {1, 2, 4}, {2, 2, 1}},
    {"aten::conv_transpose2d(%x, %y, %none, %ones, %zeros, %zeros, %one, %ones)", {1, 2, 4, 4}, {2, 2, 1, 1}},
    {"aten::conv_transpose3d(%x, %y, %none, %ones, %zeros, %zeros, %one, %ones)", {1, 2, 4, 4, 4}, {2, 2, 1, 1, 1}},
};

TEST(CastInputs, OpsThatTakeCopiesAreCastOnEveryDevice) {
    for (const Case& tried : kCases) {
        OneOp op(tried.call);
        EXPECT_FALSE(op.cast().empty()) << tried.call;
        const at::Tensor x = at::ones(tried.x), y = at::ones(tried.y);
        const auto dtype = [&] { return op.compiled()->run({x, y}, 0).at(0).toTensor().scalar_type(); };
        EXPECT_EQ(dtype(), at::kBFloat16) << tried.call << " on the CPU";
        const CardAutocastScope as_on_cards(std::nullopt);
        EXPECT_EQ(dtype(), at::kBFloat16) << tried.call << " on cards";
    }
}

TEST(CastInputs, NoOthersDo) {
    EXPECT_TRUE(OneOp("aten::add(%x, %y, %one)").cast().empty()) << "it takes the wider dtype";
    EXPECT_TRUE(OneOp("aten::mm(%x, %y)", std::nullopt).cast().empty()) << "nothing is cast";
    EXPECT_TRUE(OneOp("aten::mm(%x, %x, %y)").cast().empty()) << "autocast leaves forms with `out` alone";
    EXPECT_TRUE(OneOp("aten::mm(%x, %y, %float)").cast().empty()) << "and those with a dtype";
}

TEST(CastInputs, ComeInTheOrderInWhichAutocastCastsThem) {
    EXPECT_THAT(OneOp("aten::mm(%x, %y)").cast(), ElementsAre(1u, 0u));
    EXPECT_THAT(OneOp("aten::linear(%x, %y, %none)").cast(), ElementsAre(1u, 0u));
    OneOp made("aten::mm(%y, %made)", at::kBFloat16, "  %made : Tensor = aten::relu(%x)\n");
    EXPECT_TRUE(made.cast().empty()) << "what is made would be cast behind it";
    OneOp behind("aten::mm(%made, %y)", at::kBFloat16, "  %made : Tensor = aten::relu(%x)\n");
    EXPECT_THAT(behind.cast(), ElementsAre(1u));
}

TEST(CastInputs, GradientsOfAWeightThatIsThereTwiceAreAddedAsAutocastAddsThem) {
    for (const char* made : {"aten::mm(%y, %y)", "aten::mm(%y, %same_y)", "aten::mm(%same_y, %y)"}) {
        OneOp op("aten::add(%product, %waves, %one)", at::kBFloat16,
                 std::string("  %same_y : Tensor = aten::contiguous(%y, %zero)\n  %product : Tensor = ") + made +
                     "\n  %waves : Tensor = aten::sin(%y)\n");  // its gradient comes first, and sums round
        const auto code = op.compiled();
        const at::Tensor start = values({16, 16}, 3);
        const auto gradient = [&](bool is_shared) {
            const at::Tensor weight = start.clone().requires_grad_();
            WeightCasts casts;
            if (is_shared) casts.add(weight, at::kBFloat16);
            casts.refresh();
            const WeightCasts::Scope sharing(casts);
            code->run({weight, weight}, 0).at(0).toTensor().sum().backward();
            return bits_of(weight.grad());
        };
        EXPECT_EQ(gradient(true), gradient(false)) << made;
    }
}

TEST(CastInputs, AnOpTakesTheCopyOfAWeightWhereThereIsOneAndItsBitsStay) {
    OneOp op("aten::mm(%x, %y)");
    const at::Tensor x = values({2, 4}), y = values({4, 4}, 3).requires_grad_();
    const auto code = op.compiled();
    ASSERT_EQ(code->cast_inputs().size(), 2u);
    EXPECT_EQ(code->cast_inputs()[0].input, 1u);
    EXPECT_EQ(code->cast_inputs()[0].dtype, at::kBFloat16);
    const auto cast_of = [](const at::Tensor& made) { return made.grad_fn()->next_edge(1).function->name(); };
    const at::Tensor plain = code->run({x, y}, 0).at(0).toTensor();
    EXPECT_EQ(cast_of(plain), "ToCopyBackward0");
    WeightCasts casts;
    casts.add(y, at::kBFloat16);
    casts.refresh();
    const WeightCasts::Scope sharing(casts);
    const at::Tensor shared = code->run({x, y}, 0).at(0).toTensor();
    EXPECT_EQ(cast_of(shared), "vpp::CastNode");
    EXPECT_EQ(bits_of(shared), bits_of(plain));
}

}  // namespace
}  // namespace vpp
