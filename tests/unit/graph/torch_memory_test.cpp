#include "graph/torch_memory.hpp"

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <string>

#include "base/error.hpp"

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

TEST(TorchMemory, ADevicesErrorKeepsItsWords) {
    try {
        C10_THROW_ERROR(OutOfMemoryError, "CUDA out of memory. Tried to allocate 2.00 GiB");
    } catch (const std::exception& error) {
        try {
            throw_if_out_of_memory(error);
            FAIL() << "it is about memory";
        } catch (const Error& known) {
            EXPECT_EQ(known.kind(), ErrorKind::OutOfMemory);
            EXPECT_NE(
                std::string(known.what())
                    .find("the device has no memory left: CUDA out of memory. Tried to allocate 2.00 GiB; use more "
                          "stages, smaller microbatches (a larger pipeline.num_microbatches), pipeline.recompute, "
                          "or fewer ranks a card"),
                std::string::npos)
                << known.what();
        }
    }
}

}  // namespace
}  // namespace vpp
