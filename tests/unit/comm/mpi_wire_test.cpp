// The wire needs ranks: tests/multi/comm_mpi_test.cpp. Here: its bounds.
#include "comm/mpi_wire.hpp"

#include <gtest/gtest.h>

namespace vpp::detail {
namespace {

TEST(MpiWireOptions, KeepEnvelopesBelowTheEagerLimits) {
    const MpiWireOptions options;
    constexpr size_t kSharedMemoryEagerBytes = 4096;  // Open MPI's smallest: btl_vader_eager_limit
    EXPECT_LE(options.inline_bytes + 64, kSharedMemoryEagerBytes);
    EXPECT_LE(options.piece_bytes, size_t{2147483647});
    EXPECT_LE(options.num_tags, 32768);  // what the MPI standard promises
}

}  // namespace
}  // namespace vpp::detail
