// Each form against the op on the CPU.
#include "graph/meta_forms.hpp"

#include <ATen/ops/empty_strided.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/zeros.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <gtest/gtest.h>

#include <memory>

#include "graph/meta_kernels.hpp"
#include "graph/meta_memory.hpp"

namespace vpp {
namespace {

at::Tensor on_meta(const at::Tensor& tensor) {
    return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kMeta))
        .set_requires_grad(tensor.requires_grad());
}

void expect_alike(const at::Tensor& meta, const at::Tensor& cpu) {
    EXPECT_TRUE(meta.is_meta());
    EXPECT_EQ(meta.sizes(), cpu.sizes());
    EXPECT_EQ(meta.strides(), cpu.strides());
    EXPECT_EQ(meta.scalar_type(), cpu.scalar_type());
    EXPECT_EQ(meta.requires_grad(), cpu.requires_grad());
    EXPECT_EQ(meta.is_leaf(), cpu.is_leaf());
    EXPECT_EQ(meta.is_view(), cpu.is_view());
}

TEST(MetaForms, OtherOpsHaveNone) {
    EXPECT_EQ(find_meta_form("aten::linear"), nullptr);
}

TEST(MetaForms, LayerNorm) {
    for (const bool trained : {true, false}) {
        for (const auto dtype : {at::kFloat, at::kBFloat16}) {
            for (const bool turned : {false, true}) {
                for (const bool affine : {false, true}) {
                    at::Tensor input = at::ones({3, 5, 4}, dtype);
                    if (turned) input = at::ones({5, 3, 4}, dtype).transpose(0, 1);
                    const at::Tensor weight = at::ones({4}, dtype).set_requires_grad(trained);
                    if (!affine) input = input.detach().set_requires_grad(trained);
                    const c10::IValue none, meta_weight = affine ? c10::IValue(on_meta(weight)) : none;
                    const at::Tensor meta = find_meta_form("aten::layer_norm")(
                        {on_meta(input), std::vector<int64_t>{4}, meta_weight, meta_weight, 1e-5, true}, at::kCPU);
                    const auto cpu_weight = affine ? std::optional(weight) : std::nullopt;
                    expect_alike(meta, at::layer_norm(input, {4}, cpu_weight, cpu_weight));
                }
            }
        }
    }
    EXPECT_ANY_THROW(find_meta_form("aten::layer_norm")(
        {on_meta(at::ones({3, 4})), std::vector<int64_t>{5}, c10::IValue(), c10::IValue(), 1e-5, true}, at::kCPU));
}

struct AttentionCase {
    int order = 0;  ///< in memory: [n, h, t, d], [n, t, h, d], a third of [n, t, 3, h, d]
    bool trained = true;
    bool masked = false;
    double dropout = 0;
    bool causal = true;
    int64_t value_width = 8;
    int64_t key_length = 6;
    at::ScalarType dtype = at::kFloat;
};

void expect_attention_alike(const AttentionCase& c) {
    const auto part = [&](int64_t t, int64_t d) {
        const at::Tensor tensor = c.order == 0   ? at::ones({2, 3, t, d}, c.dtype)
                                  : c.order == 1 ? at::ones({2, t, 3, d}, c.dtype).transpose(1, 2)
                                                 : at::ones({2, t, 3, 3, d}, c.dtype).select(2, 1).transpose(1, 2);
        return tensor.detach().set_requires_grad(c.trained);
    };
    const at::Tensor query = part(6, 8), key = part(c.key_length, 8), value = part(c.key_length, c.value_width);
    const std::optional<at::Tensor> mask =
        c.masked ? std::optional(at::zeros({6, c.key_length}, c.dtype)) : std::nullopt;
    const c10::IValue meta_mask = mask ? c10::IValue(on_meta(*mask)) : c10::IValue();
    const at::Tensor meta = find_meta_form("aten::scaled_dot_product_attention")(
        {on_meta(query), on_meta(key), on_meta(value), meta_mask, c.dropout, c.causal, c10::IValue(), false}, at::kCPU);
    expect_alike(meta, at::scaled_dot_product_attention(query, key, value, mask, c.dropout, c.causal));
}

TEST(MetaForms, Attention) {
    complete_meta_kernels();
    const AttentionCase usual;
    std::vector<AttentionCase> cases{usual};
    for (const auto& change : std::vector<void (*)(AttentionCase&)>{
             [](AttentionCase& c) { c.trained = false; }, [](AttentionCase& c) { c.masked = true, c.causal = false; },
             [](AttentionCase& c) { c.dropout = 0.5; }, [](AttentionCase& c) { c.causal = false; },
             [](AttentionCase& c) { c.dropout = 0.5, c.masked = true, c.causal = false; },
             [](AttentionCase& c) { c.value_width = 4, c.causal = false; },
             [](AttentionCase& c) { c.key_length = 9, c.causal = false; },
             [](AttentionCase& c) { c.dtype = at::kBFloat16; }}) {
        cases.push_back(usual);
        change(cases.back());
    }
    for (size_t i = 0; i < cases.size(); ++i) {
        for (const int order : {0, 1, 2}) {
            SCOPED_TRACE(std::to_string(i) + " in order " + std::to_string(order));
            cases[i].order = order;
            expect_attention_alike(cases[i]);
        }
    }
}

// Three and five dimensions, and one head of keys for all of the queries.
TEST(MetaForms, AttentionOfOtherShapes) {
    complete_meta_kernels();
    using Shape = std::vector<int64_t>;
    for (const auto& [of_query, of_key] : {std::pair<Shape, Shape>{{3, 6, 8}, {3, 6, 8}},
                                           {{2, 2, 3, 6, 8}, {2, 2, 3, 6, 8}},
                                           {{2, 3, 6, 8}, {2, 1, 6, 8}}}) {
        const at::Tensor query = at::ones(of_query).set_requires_grad(true);
        const at::Tensor key = at::ones(of_key).set_requires_grad(true);
        const at::Tensor meta = find_meta_form("aten::scaled_dot_product_attention")(
            {on_meta(query), on_meta(key), on_meta(key), c10::IValue(), 0.0, true, c10::IValue(), false}, at::kCPU);
        expect_alike(meta, at::scaled_dot_product_attention(query, key, key, {}, 0, true));
    }
}

/// Bytes of the meta device that are there behind the op, its output and what its backward reads.
int64_t bytes_behind_attention(const at::Tensor& query, double dropout, at::Device target) {
    report_meta_memory();
    const auto memory = std::make_shared<MetaMemory>(1);
    const c10::DebugInfoGuard watching(c10::DebugInfoKind::PROFILER_STATE, memory);
    const at::Tensor output = find_meta_form("aten::scaled_dot_product_attention")(
        {query, query, query, c10::IValue(), dropout, true, c10::IValue(), false}, target);
    return memory->alive_bytes();
}

TEST(MetaForms, AttentionKeepsScoresWhereTheCpuDropsThemOut) {
    complete_meta_kernels();
    const at::Tensor query = at::ones({2, 3, 64, 8}, at::kMeta).set_requires_grad(true);
    const int64_t scores_bytes = int64_t{2 * 3 * 64 * 64 * 4};
    EXPECT_LT(bytes_behind_attention(query, 0, at::kCPU), scores_bytes);
    EXPECT_GT(bytes_behind_attention(query, 0.1, at::kCPU), 3 * scores_bytes);
    EXPECT_EQ(bytes_behind_attention(query, 0.1, at::Device(at::kCUDA, 0)), bytes_behind_attention(query, 0, at::kCPU));
}

}  // namespace
}  // namespace vpp
