#include "optim/memory_order.hpp"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "optim/rules.hpp"
#include "program/replica_shares.hpp"

namespace vpp {
namespace {

TEST(MemoryOrder, isThatOfTheMemoryWhateverTheStrides) {
    const at::Tensor plain = at::arange(6, at::kFloat).view({2, 3});
    EXPECT_TRUE(at::equal(in_memory_order(plain), at::arange(6, at::kFloat)));
    const at::Tensor turned = plain.t();
    EXPECT_TRUE(at::equal(in_memory_order(turned), at::arange(6, at::kFloat)));
    in_memory_order(turned)[5].fill_(9);
    EXPECT_EQ(turned[2][1].item<float>(), 9) << "the memory is shared";
    EXPECT_EQ(in_memory_order(at::zeros({})).numel(), 1);
    EXPECT_THROW(in_memory_order(plain.slice(1, 0, 2)), Error) << "it has gaps";
}

TEST(MemoryOrder, aGradientOfAnotherLayoutIsRefused) {
    at::Tensor parameter = at::zeros({2, 3});
    check_gradient("w", parameter);
    parameter.mutable_grad() = at::zeros({2, 3});
    check_gradient("w", parameter);
    parameter.mutable_grad() = at::zeros({3, 2}).t();
    const auto refusal = [&] {
        try {
            check_gradient("w", parameter);
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), ErrorKind::BadData);
            return std::string(error.what());
        }
        return std::string();
    };
    EXPECT_EQ(refusal(),
              "the parameter w is not laid out densely in memory, as its gradient is; export the model with that "
              "parameter contiguous");
    parameter.mutable_grad() = at::zeros({2, 3}).to_sparse();
    EXPECT_EQ(refusal(),
              "the gradient of w is sparse, which the fused optimizers cannot take; export the model with "
              "sparse=False");
}

/// The update of a parameter in one call, and in two that begin at `border`; whether the bits are the same.
bool is_same_in_parts(int64_t size, int64_t border) {
    const auto update = [](const std::vector<at::Tensor>& parameters, const std::vector<at::Tensor>& gradients) {
        detail::UpdateBatch batch;
        OptimizerValues values;
        values.weight_decay = 0.1;
        batch.slots.resize(3);
        for (size_t i = 0; i < parameters.size(); ++i) {
            batch.parameters.push_back(parameters[i]);
            batch.gradients.push_back(gradients[i]);
            batch.slots[0].push_back(at::zeros({}));
            for (size_t slot : {1U, 2U}) batch.slots[slot].push_back(at::zeros_like(parameters[i]));
        }
        for (int step = 0; step < 5; ++step) detail::update_adamw(batch, values, 0.01);
    };
    const at::Tensor start = at::rand({size}), gradient = at::rand({size}).mul(1e-3);
    const at::Tensor whole = start.clone(), parts = start.clone();
    update({whole}, {gradient});
    update({parts.slice(0, 0, border), parts.slice(0, border)},
           {gradient.slice(0, 0, border), gradient.slice(0, border)});
    return at::equal(whole, parts);
}

TEST(MemoryOrder, anUpdateInPartsThatEndAtGrainsHasTheBitsOfTheWhole) {
    for (int64_t size : {65, 127, 1000, 4099}) {
        for (int64_t border = kGrainElements; border < size; border += kGrainElements) {
            EXPECT_TRUE(is_same_in_parts(size, border)) << size << " cut at " << border;
        }
    }
}

}  // namespace
}  // namespace vpp
