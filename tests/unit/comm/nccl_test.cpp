#include "comm/nccl.hpp"

#include <gtest/gtest.h>

#include <regex>

#include "base/error.hpp"
#include "device/cards.hpp"

namespace vpp {
namespace {

TEST(Nccl, IsThereWithTheCudaParts) {
    if (has_cuda_parts()) {
        EXPECT_TRUE(std::regex_match(nccl_version(), std::regex(R"(NCCL 2\.\d+\.\d+)"))) << nccl_version();
    } else {
        EXPECT_EQ(nccl_version(), "");
        EXPECT_THROW(make_nccl_links(0, 1), Error);
    }
}

// A name needs no card; two of them differ.
TEST(Nccl, NamesLinks) {
    if (!has_cuda_parts()) GTEST_SKIP() << "NCCL is not compiled in: VPP_CUDA";
    const auto maker = make_nccl_links(0, 1);
    const Bytes id = maker->make_id();
    EXPECT_EQ(id.size(), 128U + sizeof(int));  // NCCL's name and how many blocks
    EXPECT_NE(id, maker->make_id());
}

}  // namespace
}  // namespace vpp
