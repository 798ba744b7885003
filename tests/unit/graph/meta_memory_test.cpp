// What tensors of the meta device would take.
#include "graph/meta_memory.hpp"

#include <ATen/Functions.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>

namespace vpp {
namespace {

TEST(MetaMemory, CountsWhatIsAliveOnTheMetaDevice) {
    report_meta_memory();
    report_meta_memory();
    const at::Tensor before = at::empty({5}, at::kMeta);
    const auto memory = std::make_shared<MetaMemory>(2);
    std::optional<c10::DebugInfoGuard> watching(std::in_place, c10::DebugInfoKind::PROFILER_STATE, memory);
    std::optional<at::Tensor> made = at::empty({3, 4}, at::kMeta);
    EXPECT_EQ(memory->alive_bytes(), 48);
    const at::Tensor view = made->view({12}).narrow(0, 2, 4);
    const at::Tensor elsewhere = at::empty({7});
    made.reset();
    EXPECT_EQ(memory->alive_bytes(), 48) << "the view has it";
    const at::Tensor sum = before + before;
    EXPECT_EQ(memory->alive_bytes(), 48 + 20);
    watching.reset();
    const at::Tensor unseen = at::empty({9}, at::kMeta);
    EXPECT_EQ(memory->alive_bytes(), 48 + 20);
}

class WatchedMetaMemory : public ::testing::Test {
  protected:
    WatchedMetaMemory() { report_meta_memory(); }

    std::shared_ptr<MetaMemory> memory_ = std::make_shared<MetaMemory>(3);
    c10::DebugInfoGuard watching_{c10::DebugInfoKind::PROFILER_STATE, memory_};
};

TEST_F(WatchedMetaMemory, EachOpHasWhatItHasMade) {
    std::optional<at::Tensor> first = at::empty({5}, at::kMeta);
    memory_->begin_op(2);
    const at::Tensor second = at::empty({7}, at::kMeta);
    EXPECT_EQ(memory_->alive_bytes_of(0), 20);
    EXPECT_EQ(memory_->alive_bytes_of(2), 28);
    first.reset();
    EXPECT_EQ(memory_->alive_bytes_of(0), 0) << "whoever lets it go";
    EXPECT_EQ(memory_->alive_bytes_of(2), 28);
}

TEST_F(WatchedMetaMemory, WhatIsGivenItsSizeLaterCounts) {
    std::optional<at::Tensor> grown = at::empty({0}, at::kMeta);
    grown->resize_({6});
    EXPECT_EQ(memory_->alive_bytes(), 0);
    EXPECT_EQ(memory_->note_size(*grown->storage().unsafeGetStorageImpl()), 24);
    EXPECT_EQ(memory_->alive_bytes(), 24);
    memory_->begin_op(1);
    EXPECT_EQ(memory_->note_size(*grown->storage().unsafeGetStorageImpl()), 0) << "another op made it";
    grown.reset();
    EXPECT_EQ(memory_->alive_bytes(), 0);
}

TEST_F(WatchedMetaMemory, ConstantsDoNotCount) {
    std::optional<at::Tensor> constant;
    {
        const UntoldMetaMemory untold;
        const UntoldMetaMemory inside;
        constant = at::empty({5}, at::kMeta);
    }
    const at::Tensor made = at::empty({3}, at::kMeta);
    EXPECT_EQ(memory_->alive_bytes(), 12);
    EXPECT_EQ(memory_->note_size(*constant->storage().unsafeGetStorageImpl()), 0);
    constant.reset();
    EXPECT_EQ(memory_->alive_bytes(), 12);
}

TEST_F(WatchedMetaMemory, WhatNobodyWasToldOfIsFreedUntold) {
    // Of no bytes too: else its freed block would be taken for one that is made, and the next one there for its end.
    for (const int64_t size : {0, 5}) {
        std::optional<at::Tensor> constant;
        {
            const UntoldMetaMemory untold;
            constant = at::empty({size}, at::kMeta);
        }
        constant.reset();
        const at::Tensor made = at::empty({3}, at::kMeta);
        EXPECT_EQ(memory_->alive_bytes(), 12) << size;
    }
}

}  // namespace
}  // namespace vpp
