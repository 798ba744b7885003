// What changes in place whether a tensor requires a gradient.
#include "graph/gradient_watch.hpp"

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vpp {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(GradientWatch, WhoeverSharesTheMemoryChangesWithTheWrittenView) {
    GradientWatch watch;
    const at::Tensor trained = at::ones({2}).set_requires_grad(true);
    const at::Tensor board = at::zeros({4}), other = at::zeros({4});
    const at::Tensor left = board.narrow(0, 0, 2), right = board.narrow(0, 2, 2);
    for (const at::Tensor& tensor : {trained, board, other, left, right}) watch.add(tensor);
    left.copy_(at::ones({2}));
    watch.look_again(left, 6);
    EXPECT_THAT(watch.flips(), IsEmpty()) << "numbers without a gradient";
    left.copy_(trained);
    watch.look_again(left, 7);
    for (const at::Tensor& tensor : {board, left, right}) {
        ASSERT_TRUE(watch.flips().count(tensor.unsafeGetTensorImpl()));
        EXPECT_THAT(watch.flips().at(tensor.unsafeGetTensorImpl()), ElementsAre(7));
    }
    EXPECT_EQ(watch.flips().size(), 3u);
}

TEST(GradientWatch, AGradientMayComeAndGo) {
    GradientWatch watch;
    const at::Tensor trained = at::ones({4}).set_requires_grad(true);
    const at::Tensor board = at::zeros({4});
    const c10::List<at::Tensor> list({board});
    watch.add(list);
    board.add_(trained);
    watch.look_again(list, 2);
    watch.add(board);
    watch.look_again(board, 3);
    board.detach_();
    watch.look_again(board, 4);
    EXPECT_THAT(watch.flips().at(board.unsafeGetTensorImpl()), ElementsAre(2, 4));
}

TEST(GradientWatch, ABranchMayGiveOrTakeAGradientOnAnotherWay) {
    GradientWatch watch;
    const at::Tensor board = at::zeros({4}), view = board.narrow(0, 0, 2), kept = at::zeros({4}),
                     buffer = at::zeros({4}), counts = at::zeros({4}, at::kLong);
    at::Tensor trained = at::ones({4}).set_requires_grad(true) * 2;
    watch.add_given(buffer);
    for (const at::Tensor& tensor : {board, view, kept, trained, counts}) watch.add(tensor);
    for (const at::Tensor& tensor : {view, buffer, counts}) watch.look_behind_branch(tensor, 3, true);
    watch.look_behind_branch(kept, 3, false);
    trained.detach_();
    watch.look_behind_branch(trained, 5, false);
    EXPECT_TRUE(board.requires_grad() && view.requires_grad() && trained.requires_grad());
    EXPECT_FALSE(kept.requires_grad() || buffer.requires_grad());
    board.add_(1);  // as what an op has made, and no leaf
    EXPECT_THAT(watch.flips().at(board.unsafeGetTensorImpl()), ElementsAre(3));
    EXPECT_THAT(watch.flips().at(view.unsafeGetTensorImpl()), ElementsAre(3));
    EXPECT_THAT(watch.flips().at(trained.unsafeGetTensorImpl()), ElementsAre(5, 5)) << "not to be parted before it";
    EXPECT_EQ(watch.flips().size(), 3u);
}

}  // namespace
}  // namespace vpp
