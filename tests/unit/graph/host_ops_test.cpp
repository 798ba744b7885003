#include "graph/host_ops.hpp"

#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace vpp {
namespace {

TEST(HostOps, AreOpsOfLibTorch) {
    std::set<std::string> found;
    for (const c10::OperatorName& op : c10::Dispatcher::singleton().getAllOpNames()) {
        if (runs_on_host(op.name) != OnHost::Never) found.insert(op.name);
    }
    EXPECT_EQ(found.size(), 5U);
    EXPECT_TRUE(found.contains("aten::ctc_loss"));
}

TEST(HostOps, SomeRunThereInTheirBackwardPassAlone) {
    EXPECT_EQ(runs_on_host("aten::_upsample_bilinear2d_aa"), OnHost::Backward);
    EXPECT_EQ(runs_on_host("aten::index_reduce_"), OnHost::Always);
    EXPECT_EQ(runs_on_host("aten::max_pool2d"), OnHost::Never);
    EXPECT_EQ(runs_on_host("aten::upsample_bilinear2d"), OnHost::Never) << "it has a backward pass for cards here";
}

}  // namespace
}  // namespace vpp
