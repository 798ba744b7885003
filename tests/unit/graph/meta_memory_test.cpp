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
    const auto memory = std::make_shared<MetaMemory>();
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

}  // namespace
}  // namespace vpp
