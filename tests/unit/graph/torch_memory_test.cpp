#include "graph/torch_memory.hpp"

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

namespace vpp {
namespace {

TEST(TorchMemory, LibTorchsOwnErrorIsKnown) {
    try {
        at::empty({int64_t{1} << 60}, at::kByte);
        FAIL() << "an exbibyte was given";
    } catch (const std::exception& error) {
        EXPECT_THROW(throw_if_out_of_memory(error), std::bad_alloc) << error.what();
    }
    EXPECT_THROW(throw_if_out_of_memory(std::bad_alloc()), std::bad_alloc);
    EXPECT_NO_THROW(throw_if_out_of_memory(std::runtime_error("shapes do not fit")));
}

}  // namespace
}  // namespace vpp
