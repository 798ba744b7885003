// The wire needs ranks: tests/multi/comm_wire_test.cpp. Here: its bounds.
#include "comm/mpi_wire.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace vpp::detail {
namespace {

TEST(MpiWireOptions, KeepEnvelopesBelowTheEagerLimits) {
    const MpiWireOptions options;
    constexpr size_t kSharedMemoryEagerBytes = 4096;  // Open MPI's smallest: btl_vader_eager_limit
    EXPECT_LE(options.inline_bytes + 64, kSharedMemoryEagerBytes);
    EXPECT_LE(options.piece_bytes, size_t{2147483647});
    EXPECT_EQ(options.num_tags, std::numeric_limits<int>::max()) << "all that the library has";
}

}  // namespace
}  // namespace vpp::detail
