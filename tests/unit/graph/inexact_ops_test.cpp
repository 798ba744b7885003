#include "graph/inexact_ops.hpp"

#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace vpp {
namespace {

TEST(InexactOps, AreOpsOfLibTorch) {
    std::set<std::string> found;
    for (const c10::OperatorName& op : c10::Dispatcher::singleton().getAllOpNames()) {
        if (inexact_on_cards(op.name) != Inexact::Never) found.insert(op.name);
    }
    EXPECT_EQ(found.size(), 12U);
    EXPECT_TRUE(found.contains("aten::ctc_loss"));
}

TEST(InexactOps, SomeLoseInTheirBackwardPassAlone) {
    EXPECT_EQ(inexact_on_cards("aten::grid_sampler"), Inexact::Backward);
    EXPECT_EQ(inexact_on_cards("aten::put_"), Inexact::Always);
    EXPECT_EQ(inexact_on_cards("aten::max_pool2d"), Inexact::Never);
    EXPECT_EQ(inexact_on_cards("aten::upsample_bilinear2d"), Inexact::Never) << "it has another backward pass here";
}

}  // namespace
}  // namespace vpp
