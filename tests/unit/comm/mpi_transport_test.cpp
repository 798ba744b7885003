// The transport needs ranks: tests/multi/comm_mpi_test.cpp. Here: what its users rely on without naming it.
#include "comm/mpi_transport.hpp"

#include <gtest/gtest.h>

namespace vpp {
namespace {

TEST(MpiTransportOptions, DefaultsOverlapAndWaitLongerThanAnyAction) {
    const MpiTransportOptions options;
    EXPECT_TRUE(options.overlap);
    EXPECT_GE(options.deadline_seconds, 60);
    EXPECT_LE(options.piece_bytes, size_t{2147483647});
}

}  // namespace
}  // namespace vpp
