// What the probe says of the order of tensors in memory, against the same ops on the CPU: many ops, each on inputs in
// many orders. One that is not alike wants a row in graph/meta_layouts.cpp.
#include "graph/meta_layouts.hpp"

#include <ATen/ops/ones.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/compilation_unit.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/frontend/resolver.h>
#include <torch/csrc/jit/passes/constant_propagation.h>

#include <string>
#include <vector>

#include "graph/ivalue_tensors.hpp"
#include "graph/jit_executable.hpp"
#include "graph/probe.hpp"

namespace vpp {
namespace {

/// A function of a field x and a parameter w without dims.
class OpsOfField {
  public:
    OpsOfField(const std::string& body, std::vector<int64_t> sizes, bool trained) : sizes_(std::move(sizes)) {
        torch::jit::CompilationUnit unit;
        unit.define(std::nullopt, "def f(x, w):\n" + body, torch::jit::nativeResolver(), nullptr);
        jit_.graph = torch::jit::toGraphFunction(unit.get_function("f")).graph()->copy();
        torch::jit::ConstantPropagation(jit_.graph);
        jit_.parameters.push_back({"w", {}, at::ones({}).set_requires_grad(trained), false, jit_.graph->inputs()[1]});
        list_ops(jit_);
    }

    std::vector<at::Tensor> run() const {
        const OpRange all{0, static_cast<int>(jit_.ops.size())};
        const auto& inputs = jit_.graph->inputs();
        const auto executable = compile_ops(jit_, all.list(), {inputs[0], inputs[1]}, {jit_.graph->outputs()[0]});
        return tensors_in(executable->run({at::ones(sizes_), jit_.parameters[0].tensor}, 0)[0]);
    }

    std::vector<at::Tensor> probed() const {
        const Field field{"x", DType::F32, {sizes_.begin() + 1, sizes_.end()}};
        const ProbeResult result = probe(jit_, {{jit_.graph->inputs()[0], field}}, sizes_[0], {});
        EXPECT_FALSE(result.shapes_follow_data);
        return tensors_in(result.values.at(jit_.graph->outputs()[0]));
    }

  private:
    std::vector<int64_t> sizes_;
    JitGraph jit_;
};

/// Tensors of some sizes in several orders, as what makes them of a contiguous one.
struct InOrders {
    std::vector<int64_t> sizes;
    std::vector<std::string> orders;
};

const InOrders kImageOrders{{2, 8, 4, 6},
                            {"x", "x.contiguous(memory_format=2)", "x.reshape(2, 4, 6, 8).permute(0, 3, 1, 2)",
                             "x.reshape(6, 4, 8, 2).permute(3, 2, 1, 0)", "x.reshape(8, 2, 4, 6).transpose(0, 1)",
                             "x.reshape(2, 8, 6, 4).transpose(2, 3)", "torch.cat([x, x], 1)[:, ::2]",
                             "torch.cat([x, x], 1).contiguous(memory_format=2)[:, 0:8]"}};
const InOrders kVolumeOrders{
    {2, 4, 4, 6, 6},
    {"x", "x.contiguous(memory_format=3)", "x.contiguous(memory_format=3)[0:1]",
     "x.reshape(2, 4, 6, 6, 4).permute(0, 4, 1, 2, 3)", "x.reshape(4, 2, 4, 6, 6).transpose(0, 1)"}};
const InOrders kRowOrders{
    {2, 4, 6},
    {"x", "x.reshape(2, 6, 4).transpose(1, 2)", "x.reshape(4, 2, 6).transpose(0, 1)",
     "x.reshape(6, 4, 2).permute(2, 1, 0)", "torch.cat([x, x], 1)[:, ::2]", "x[:, 0:1].expand(2, 4, 6)"}};

/// Whether b is the very tensor a, or has its memory.
std::string relation(const at::Tensor& a, const at::Tensor& b) {
    if (a.is_same(b)) return "same";
    return a.storage().unsafeGetStorageImpl() == b.storage().unsafeGetStorageImpl() ? "view" : "other";
}

void expect_order(const std::string& op, const std::vector<int64_t>& sizes, const std::string& order, bool trained) {
    SCOPED_TRACE(op + " where x = " + order + (trained ? ", trained" : ""));
    const OpsOfField function("    x = x * w\n    x = " + order + "\n    return " + op + ", x\n", sizes, trained);
    const std::vector<at::Tensor> cpu = function.run(), meta = function.probed();
    ASSERT_EQ(meta.size(), cpu.size());
    for (size_t i = 0; i < cpu.size(); ++i) {
        EXPECT_EQ(meta[i].sizes(), cpu[i].sizes());
        EXPECT_EQ(meta[i].strides(), cpu[i].strides());
        EXPECT_EQ(meta[i].scalar_type(), cpu[i].scalar_type());
        EXPECT_EQ(meta[i].requires_grad(), cpu[i].requires_grad());
        EXPECT_EQ(relation(meta[i], meta.back()), relation(cpu[i], cpu.back()));
    }
}

void expect_orders(const InOrders& inputs, const std::vector<std::string>& ops) {
    for (const std::string& op : ops) {
        for (const std::string& order : inputs.orders) {
            for (const bool trained : {true, false}) expect_order(op, inputs.sizes, order, trained);
        }
    }
}

void expect_orders_anywhere(const std::vector<std::string>& ops) {
    for (const InOrders* inputs : {&kImageOrders, &kVolumeOrders, &kRowOrders}) expect_orders(*inputs, ops);
}

TEST(MetaLayouts, OtherOpsHaveNone) {
    EXPECT_EQ(find_meta_layout("aten::linear"), nullptr);
}

TEST(MetaLayouts, CardsHaveTheirOwn) {
    const at::Tensor image = at::ones({2, 4, 6, 8}, at::kMeta).contiguous(at::MemoryFormat::ChannelsLast);
    const MetaLayout layout = find_meta_layout("aten::group_norm");
    EXPECT_EQ(layout({image}, at::kCPU), at::MemoryFormat::ChannelsLast);
    EXPECT_EQ(layout({image}, at::Device(at::kCUDA, 0)), std::nullopt);
}

// Whether contiguous() copies is known from what is before it.
TEST(MetaLayouts, WhatIsBehindThemIsKnown) {
    expect_orders(kImageOrders, {"torch.group_norm(x, 2).permute(0, 2, 3, 1).contiguous()",
                                 "torch.conv2d(torch.relu(torch.group_norm(x, 2)), torch.ones([4, 8, 3, 3]))"});
    expect_orders(kVolumeOrders, {"torch.group_norm(x, 2).permute(0, 2, 3, 4, 1).contiguous()"});
}

TEST(MetaLayouts, Norms) {
    expect_orders_anywhere({"torch.group_norm(x, 2)",
                            "torch.batch_norm(x, None, None, None, None, True, 0.1, 1e-5, True)",
                            "torch.instance_norm(x, None, None, None, None, True, 0.1, 1e-5, True)",
                            "torch.layer_norm(x, [x.size(-1)])", "torch.layer_norm(x, [x.size(-2), x.size(-1)])",
                            "torch.rms_norm(x, [x.size(-1)])", "torch.linalg_vector_norm(x, 2, [1], True)"});
}

TEST(MetaLayouts, Shuffles) {
    expect_orders(kImageOrders, {"torch.pixel_shuffle(x, 2)", "torch.pixel_shuffle(x[:, 0:4], 2)",
                                 "torch.pixel_unshuffle(x, 2)", "torch.channel_shuffle(x, 2)"});
    expect_orders(kImageOrders, {"torch.native_channel_shuffle(x.contiguous(memory_format=2), 2)"});
    expect_orders(kVolumeOrders, {"torch.channel_shuffle(x, 2)"});
}

TEST(MetaLayouts, Paddings) {
    expect_orders_anywhere({"torch.constant_pad_nd(x, [1, 2], 0)", "torch.pad(x, [1, 2], \"constant\", 0.)"});
    expect_orders(kRowOrders, {"torch.reflection_pad1d(x, [1, 2])", "torch.replication_pad1d(x, [1, 2])",
                               "torch.reflection_pad2d(x, [1, 2, 1, 0])", "torch.replication_pad2d(x, [1, 2, 1, 0])",
                               "torch.pad(x, [1, 2], \"reflect\")", "torch.pad(x, [1, 2], \"replicate\")",
                               "torch.pad(x, [1, 2], \"circular\")"});
    expect_orders(kImageOrders,
                  {"torch.reflection_pad2d(x, [1, 2, 1, 0])", "torch.replication_pad2d(x, [1, 2, 1, 0])",
                   "torch.reflection_pad3d(x, [1, 2, 1, 0, 1, 1])", "torch.replication_pad3d(x, [1, 2, 1, 0, 1, 1])",
                   "torch.pad(x, [1, 2, 1, 1], \"reflect\")", "torch.pad(x, [1, 2, 1, 1], \"replicate\")",
                   "torch.pad(x, [1, 2, 1, 1], \"circular\")", "torch.pad(x, [1, 2, 1, 1, 1, 1], \"replicate\")"});
    expect_orders(kVolumeOrders,
                  {"torch.reflection_pad3d(x, [1, 2, 1, 0, 1, 1])", "torch.replication_pad3d(x, [1, 2, 1, 0, 1, 1])",
                   "torch.pad(x, [1, 2, 1, 1, 1, 1], \"reflect\")", "torch.pad(x, [1, 2, 1, 1, 1, 1], \"replicate\")",
                   "torch.pad(x, [1, 2, 1, 1, 1, 1], \"circular\")"});
}

TEST(MetaLayouts, Pooling) {
    expect_orders(kRowOrders, {"torch.max_pool1d(x, [2])", "torch.avg_pool1d(x, [2])",
                               "torch.adaptive_avg_pool1d(x, [2])", "torch.adaptive_max_pool1d(x, [2])"});
    expect_orders(kImageOrders,
                  {"torch.max_pool2d(x, [3, 3], [2, 2], [1, 1])", "torch.max_pool2d_with_indices(x, [2, 2])",
                   "torch.avg_pool2d(x, [2, 2])", "torch.adaptive_avg_pool2d(x, [2, 2])",
                   "torch.adaptive_avg_pool2d(x, [1, 1])", "torch.adaptive_max_pool2d(x, [2, 2])"});
    expect_orders(kVolumeOrders,
                  {"torch.max_pool3d(x, [2, 2, 2])", "torch.avg_pool3d(x, [2, 2, 2])",
                   "torch.adaptive_avg_pool3d(x, [2, 2, 2])", "torch.adaptive_avg_pool3d(x, [1, 1, 1])"});
}

TEST(MetaLayouts, Sampling) {
    expect_orders(kRowOrders, {"torch.upsample_nearest1d(x, [12], None)", "torch.upsample_linear1d(x, [12], False)"});
    expect_orders(kImageOrders,
                  {"torch.upsample_nearest2d(x, [8, 12], None)", "torch.upsample_bilinear2d(x, [8, 12], False)",
                   "torch.upsample_bicubic2d(x, [8, 12], False)", "torch._upsample_bilinear2d_aa(x, [2, 3], False)",
                   "torch.grid_sampler(x, torch.zeros([2, 5, 5, 2]), 0, 0, False)",
                   "torch.im2col(x, [2, 2], [1, 1], [0, 0], [2, 2])"});
    expect_orders(kVolumeOrders, {"torch.upsample_nearest3d(x, [8, 12, 12], None)",
                                  "torch.upsample_trilinear3d(x, [8, 12, 12], False)"});
}

TEST(MetaLayouts, Convolutions) {
    expect_orders(kRowOrders,
                  {"torch.conv1d(x, torch.ones([6, 4, 3]))", "torch.conv_transpose1d(x, torch.ones([4, 6, 3]))"});
    expect_orders(kImageOrders, {"torch.conv2d(x, torch.ones([6, 8, 1, 1]))",
                                 "torch.conv2d(x, torch.ones([6, 8, 3, 3]), None, [1, 1], \"same\")",
                                 "torch.conv2d(x, torch.ones([6, 8, 5, 5]), None, [2, 2], [2, 2])",
                                 "torch.conv2d(x, torch.ones([8, 1, 3, 3]), None, [1, 1], [1, 1], [1, 1], 8)",
                                 "torch.conv2d(x, torch.ones([6, 8, 3, 3]).contiguous(memory_format=2))",
                                 "torch.conv2d(x.to(7), torch.ones([6, 8, 3, 3]).to(7))",
                                 "torch.conv2d(x[0], torch.ones([6, 8, 3, 3]))",
                                 "torch.conv_transpose2d(x, torch.ones([8, 6, 2, 2]), None, [2, 2])",
                                 "torch.conv_transpose2d(x.to(7), torch.ones([8, 6, 2, 2]).to(7), None, [2, 2])"});
    expect_orders(
        kVolumeOrders,
        {"torch.conv3d(x, torch.ones([6, 4, 1, 1, 1]))", "torch.conv3d(x, torch.ones([6, 4, 2, 2, 2]))",
         "torch.conv3d(x, torch.ones([6, 4, 3, 3, 3]), None, [1, 1, 1], \"same\")",
         "torch.conv3d(x, torch.ones([6, 4, 2, 2, 2]), None, [1, 1, 1], [0, 0, 0], [2, 2, 2])",
         "torch.conv3d(x.to(7), torch.ones([6, 4, 2, 2, 2]).to(7))",
         "torch.conv_transpose3d(x, torch.ones([4, 6, 1, 1, 1]))",
         "torch.conv_transpose3d(x, torch.ones([4, 6, 2, 2, 2]), None, [2, 2, 2])",
         "torch.convolution(x, torch.ones([4, 6, 1, 1, 1]), None, [1, 1, 1], [0, 0, 0], [1, 1, 1], True, [0, 0, 0], 1)",
         "torch._convolution(x, torch.ones([6, 4, 1, 1, 1]), None, [1, 1, 1], [0, 0, 0], [1, 1, 1], False, [0, 0, 0], "
         "1, "
         "False, False, True, True)"});
}

TEST(MetaLayouts, OpsOfEachElement) {
    expect_orders_anywhere({"torch.relu(x)",
                            "torch.gelu(x)",
                            "torch.silu(x)",
                            "torch.tanh(x)",
                            "torch.softplus(x)",
                            "torch.elu(x)",
                            "torch.leaky_relu(x)",
                            "torch.hardswish(x)",
                            "torch.log_sigmoid(x)",
                            "torch.glu(x, 1)",
                            "torch.prelu(x, torch.ones([1]))",
                            "torch.exp(x)",
                            "torch.abs(x)",
                            "torch.pow(x, 2)",
                            "torch.clamp(x, 0.1, 0.9)",
                            "torch.dropout(x, 0.1, True)",
                            "torch.dropout(x, 0.1, False)",
                            "torch.dropout(x, 0.0, True)",
                            "torch.feature_dropout(x, 0.1, True)",
                            "torch.alpha_dropout(x, 0.1, True)",
                            "torch.add(x, 1)",
                            "torch.mul(x, x.contiguous())",
                            "torch.mul(x.contiguous(), x)",
                            "torch.add(torch.ones([x.size(-1)]), x)",
                            "torch.add(x.sum(1, True), x)",
                            "torch.lerp(x, x.contiguous(), 0.3)",
                            "torch.addcmul(x, x, x)",
                            "torch.maximum(x, x * 2)",
                            "torch.where(x > 0.5, x, x * 2)",
                            "torch.where(x[0] > 0.5, x, x.contiguous())",
                            "torch.where(x > 0.5, 0., x)",
                            "torch.masked_fill(x, x > 0.5, 0.)",
                            "torch.mse_loss(x, x, 0)",
                            "torch.binary_cross_entropy_with_logits(x, x, None, None, 0)",
                            "torch.kl_div(x, x, 0)"});
}

TEST(MetaLayouts, Copies) {
    expect_orders_anywhere({"torch.clone(x)",
                            "torch.clone(x, memory_format=0)",
                            "x.contiguous()",
                            "torch.zeros_like(x)",
                            "torch.rand_like(x)",
                            "torch.ones_like(x, memory_format=0)",
                            "x.to(7)",
                            "x.to(6)",
                            "x.to(6, False, True)",
                            "x.to(15)",
                            "x.reshape(-1)",
                            "torch.flatten(x, 1)",
                            "x.repeat([2] + [1] * (x.dim() - 1))",
                            "torch.repeat_interleave(x, 2, 1)",
                            "torch.tril(x)",
                            "torch.diag_embed(x)",
                            "x.expand(x.size())",
                            "x.unfold(1, 2, 1)",
                            "torch.squeeze(x)",
                            "x.detach()"});
    expect_orders(kImageOrders, {"x.contiguous(memory_format=2)", "torch.clone(x, memory_format=2)"});
    expect_orders(kVolumeOrders, {"x.contiguous(memory_format=3)"});
}

TEST(MetaLayouts, Joins) {
    expect_orders_anywhere({"torch.cat([x, x], 1)", "torch.cat([x, x], 0)", "torch.cat([x, x.contiguous()], 1)",
                            "torch.cat([x.contiguous(), x], -1)", "torch.cat([x])", "torch.stack([x, x], 1)",
                            "torch.stack([x, x], -1)", "torch.chunk(x, 2, 1)", "torch.unbind(x, 1)",
                            "torch.tensor_split(x, 2, 1)"});
}

TEST(MetaLayouts, Places) {
    const std::string places = "torch.zeros([2], dtype=4)";
    expect_orders_anywhere(
        {"torch.roll(x, [1], [1])", "torch.roll(x, [1, 1], [0, 1])", "torch.roll(x, [1])", "torch.flip(x, [1])",
         "torch.rot90(x, 1, [0, 1])", "torch.index_select(x, 1, " + places + ")",
         "torch.index_select(x, -1, " + places + ")", "x[:, " + places + "]", "x[" + places + ", " + places + "]",
         "x[" + places + ", :, " + places + "]", "torch.one_hot((x * 0).to(4), 4)",
         "torch.embedding(torch.ones([3, 5]), (x * 0).to(4))", "torch.gather(x, 1, (x * 0).to(4))",
         "torch.scatter_add(x, 1, (x * 0).to(4), x)", "torch.index_add(x, 1, " + places + ", x[:, 0:2])",
         "torch.index_put(x, [" + places + "], x[0])", "torch.sort(x, -1)", "torch.topk(x, 2, 1)"});
}

TEST(MetaLayouts, Sums) {
    expect_orders_anywhere({"torch.softmax(x, 1)", "torch.softmax(x, -1)", "torch.log_softmax(x, 1)",
                            "torch.logsumexp(x, 1)", "torch.cumsum(x, 1)", "torch.sum(x, 1)", "torch.mean(x, 1, True)",
                            "torch.mean(x, [-2, -1], True)", "torch.amax(x, 1, True)", "torch.max(x, 1)",
                            "torch.argmax(x, 1)", "torch.var(x, [1], True, True)", "torch.std_mean(x, [1])",
                            "torch.prod(x, 1)", "torch.cosine_similarity(x, x.contiguous(), 1)"});
}

TEST(MetaLayouts, Products) {
    expect_orders_anywhere({"torch.linear(x, torch.ones([5, x.size(-1)]))",
                            "torch.linear(x, torch.ones([5, x.size(-1)]), torch.ones([5]))",
                            "torch.matmul(x, torch.ones([x.size(-1), 5]))", "torch.matmul(x, x.transpose(-1, -2))",
                            "torch.matmul(torch.ones([5, x.size(-2)]), x)",
                            "torch.einsum(\"...ij,kj->...ik\", [x, torch.ones([5, x.size(-1)])])"});
    expect_orders(kImageOrders, {"torch.einsum(\"nchw,cd->ndhw\", [x, torch.ones([8, 5])])",
                                 "torch.scaled_dot_product_attention(x, x, x)"});
    expect_orders(kRowOrders, {"torch.bmm(x, x.transpose(1, 2))", "torch.cdist(x, x)",
                               "torch.scaled_dot_product_attention(x, x, x)"});
}

}  // namespace
}  // namespace vpp
