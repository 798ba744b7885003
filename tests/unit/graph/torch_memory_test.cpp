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

constexpr const char* kOfCards =
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 139.80 GiB of which 1.72 GiB is "
    "free. If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True";

void expect_known(const std::exception& error) {
    try {
        throw_if_out_of_memory(error);
        FAIL() << "it is about memory";
    } catch (const Error& known) {
        EXPECT_EQ(known.kind(), ErrorKind::OutOfMemory);
        EXPECT_EQ(std::string(known.what()),
                  "the device has no memory left: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
                  "capacity of 139.80 GiB of which 1.72 GiB is free; use more stages, smaller microbatches (a larger "
                  "pipeline.num_microbatches), pipeline.recompute, or fewer ranks a card");
    }
}

TEST(TorchMemory, ADevicesErrorKeepsItsWords) {
    try {
        C10_THROW_ERROR(OutOfMemoryError, kOfCards);
    } catch (const std::exception& error) {
        expect_known(error);
    }
}

TEST(TorchMemory, AnOpOfAModelPassesThemOnInsideOthers) {
    expect_known(std::runtime_error("The following operation failed in the TorchScript interpreter.\nTraceback\n" +
                                    std::string("RuntimeError: ") + kOfCards + "\n"));
}

}  // namespace
}  // namespace vpp
