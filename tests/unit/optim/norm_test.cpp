#include "optim/norm.hpp"

#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/stack.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "unit/optim/support.hpp"

namespace vpp {
namespace {

using test::bits_of;
using test::code_of;
using test::doubles;
using test::floats;
using test::values_of;

std::vector<at::Tensor> random_norms(size_t count, unsigned seed) {
    std::mt19937 bits(seed);
    std::vector<at::Tensor> norms;
    for (size_t i = 0; i < count; ++i) norms.push_back(at::scalar_tensor(static_cast<float>(bits() % 100'000) / 777));
    return norms;
}

at::Tensor norm_of(const at::Tensor& gradient) {
    return parameter_norms({gradient}).at(0);
}

TEST(Norm, OfOneGradient) {
    EXPECT_EQ(values_of(norm_of(floats({3, -4}))), std::vector<double>{5});
    EXPECT_EQ(values_of(norm_of(doubles({}))), std::vector<double>{0});
    EXPECT_EQ(norm_of(floats({3, -4}).view({1, 2})).dim(), 0);
    EXPECT_FALSE(norm_of({}).defined());
}

TEST(Norm, OfManyGradientsEachHasItsOwn) {
    const at::Tensor expanded = floats({3}).expand({4, 1});
    const std::vector<at::Tensor> norms =
        parameter_norms({floats({3, -4}), {}, doubles({6, 8}), floats({}), expanded, floats({5, 12})});
    ASSERT_EQ(norms.size(), 6U);
    EXPECT_FALSE(norms[1].defined());
    const std::vector<double> expected{5, 0, 10, 0, 6, 13};
    for (size_t i : {0, 2, 3, 4, 5}) EXPECT_EQ(values_of(norms[i]), std::vector<double>{expected[i]}) << i;
    EXPECT_EQ(norms[2].scalar_type(), at::kDouble);
    EXPECT_TRUE(parameter_norms({}).empty());
}

TEST(Norm, OfNorms) {
    const at::Tensor total = total_norm({at::scalar_tensor(3.0F), {}, at::scalar_tensor(4.0F)});
    EXPECT_EQ(total.dim(), 0);
    EXPECT_EQ(values_of(total), std::vector<double>{5});
    EXPECT_EQ(values_of(total_norm({})), std::vector<double>{0});
    EXPECT_EQ(values_of(total_norm({at::Tensor()})), std::vector<double>{0});
}

TEST(Norm, AnotherOrderOfNormsHasOtherBits) {
    int num_different = 0;
    for (unsigned seed = 0; seed < 40; ++seed) {
        std::vector<at::Tensor> norms = random_norms(50, seed);
        const std::string bits = bits_of(total_norm(norms));
        EXPECT_EQ(bits, bits_of(total_norm(norms)));
        std::swap(norms.front(), norms[25]);
        num_different += bits != bits_of(total_norm(norms));
    }
    EXPECT_GT(num_different, 0);
}

TEST(Norm, TheCoefficientIsNeverAboveOne) {
    const double half = values_of(clip_coefficient(doubles({2}).squeeze(), 1.0))[0];
    EXPECT_EQ(half, 1 / (2 + 1e-6));
    EXPECT_EQ(values_of(clip_coefficient(doubles({0.5}).squeeze(), 1.0))[0], 1);
    EXPECT_TRUE(std::isnan(values_of(clip_coefficient(doubles({NAN}).squeeze(), 1.0))[0]));
    EXPECT_EQ(values_of(clip_coefficient(doubles({INFINITY}).squeeze(), 1.0))[0], 0);
    EXPECT_EQ(code_of([] { clip_coefficient(doubles({1}).squeeze(), 0); }), 70);
}

TEST(Norm, TheCoefficientIsTheReciprocalTimesTheNormAndNoDivision) {
    int num_as_division = 0, num_totals = 0;
    for (const at::Tensor& total : random_norms(500, 3)) {
        const auto shifted = static_cast<float>(total.item<float>() + 1e-6F);
        if (shifted <= 0.7F) continue;
        const float reciprocal = 1.0F / shifted;
        const float expected = reciprocal * 0.7F;
        const auto got = clip_coefficient(total, 0.7).item<float>();
        ++num_totals;
        EXPECT_EQ(got, expected) << shifted;
        num_as_division += got == 0.7F / shifted;
    }
    EXPECT_LT(num_as_division, num_totals);
}

TEST(Norm, GradientsAreScaledWhereTheyAre) {
    const at::Tensor first = floats({2, 4}), last = floats({8});
    scale_gradients({first, {}, last}, at::scalar_tensor(0.5F));
    EXPECT_EQ(values_of(first), (std::vector<double>{1, 2}));
    EXPECT_EQ(values_of(last), std::vector<double>{4});
    scale_gradients({first}, at::scalar_tensor(1.0F));
    EXPECT_EQ(values_of(first), (std::vector<double>{1, 2}));
    const at::Tensor wide = doubles({3});
    scale_gradients({wide, last}, at::scalar_tensor(0.5F));
    EXPECT_EQ(values_of(wide), std::vector<double>{1.5});
    EXPECT_EQ(values_of(last), std::vector<double>{2});
    scale_gradients({{}}, at::scalar_tensor(0.5F));
}

TEST(Norm, NormsOfOneDtypeComeTogether) {
    const auto in_order = [](const std::vector<at::Tensor>& norms) {
        return bits_of(at::linalg_vector_norm(at::stack(norms), 2));
    };
    int num_mixed = 0;
    for (unsigned seed = 0; seed < 40; ++seed) {
        const std::vector<at::Tensor> norms = random_norms(50, seed);
        std::vector<at::Tensor> mixed, floats, halves;
        for (size_t i = 0; i < norms.size(); ++i) {
            mixed.push_back(i % 2 == 0 ? norms[i].to(at::kFloat) : norms[i].to(at::kBFloat16));
            (i % 2 == 0 ? floats : halves).push_back(mixed.back());
        }
        const std::string bits = bits_of(total_norm(mixed));
        num_mixed += bits != in_order(mixed);
        std::vector<at::Tensor> floats_first = floats, halves_first = halves;
        floats_first.insert(floats_first.end(), halves.begin(), halves.end());
        halves_first.insert(halves_first.end(), floats.begin(), floats.end());
        EXPECT_TRUE(bits == in_order(floats_first) || bits == in_order(halves_first)) << seed;
    }
    EXPECT_GT(num_mixed, 0);
}

}  // namespace
}  // namespace vpp
