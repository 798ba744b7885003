#include "graph/torch_errors.hpp"

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <string>

#include "base/error.hpp"

namespace vpp {
namespace {

TEST(TorchErrors, LibTorchsOwnErrorIsKnown) {
    try {
        at::empty({int64_t{1} << 60}, at::kByte);
        FAIL() << "an exbibyte was given";
    } catch (const std::exception& error) {
        EXPECT_THROW(throw_if_known(error), std::bad_alloc) << error.what();
    }
    EXPECT_THROW(throw_if_known(std::bad_alloc()), std::bad_alloc);
    EXPECT_NO_THROW(throw_if_known(std::runtime_error("shapes do not fit")));
}

TEST(TorchErrors, TheInterpretersWordsAreLeftOut) {
    const std::string text =
        "The following operation failed in the TorchScript interpreter.\nTraceback of TorchScript "
        "(most recent call last):\n";
    EXPECT_EQ(core_of(text + "RuntimeError: shapes\nmore"), "shapes");
    EXPECT_EQ(core_of("shapes\nmore"), "shapes");
    const std::string frames =
        text + "  File \"m.py\", line 5, in forward\n        raise ValueError(\"too long\")\n        ~~~~~ <--- HERE\n";
    EXPECT_EQ(core_of(frames + "vpp: the op prim::RaiseException in 'head'\nbuiltins.ValueError: too long\nmore\n"),
              "ValueError: too long");
    EXPECT_EQ(core_of(frames + "\nTraceback of TorchScript, original code:\n  x\nmine.TooLong: by 4\n"),
              "mine.TooLong: by 4");
    EXPECT_EQ(core_of(frames), "The following operation failed in the TorchScript interpreter.");
    EXPECT_EQ(model_failure(text + "vpp: the op aten::mm in 'head'\nRuntimeError: shapes\n"),
              "the op aten::mm in 'head' fails: shapes");
    EXPECT_EQ(model_failure("shapes\nmore"), "the model fails: shapes\nmore");
}

TEST(TorchErrors, TheFirstLineMayStandBehindEmptyOnes) {
    EXPECT_EQ(first_line("\nUnknown builtin op: torchvision::nms.\nCould not find"),
              "Unknown builtin op: torchvision::nms.");
    EXPECT_EQ(first_line("one\ntwo"), "one");
    EXPECT_EQ(first_line("\n\n"), "");
}

TEST(TorchErrors, KnownCausesOfAFailedOpComeWithAdvice) {
    EXPECT_EQ(op_failure("the op aten::cross_entropy_loss in 'loss'", "Expected target size [2, 64], got [2, 16]"),
              "the op aten::cross_entropy_loss in 'loss' fails: Expected target size [2, 64], got [2, 16]; classes are "
              "taken from dimension 1; if they lie along the last one: loss.class_dim = -1");
    EXPECT_EQ(op_failure("the op aten::nll_loss in 'head'", "Expected target size [2, 64], got [2, 16]"),
              "the op aten::nll_loss in 'head' fails: Expected target size [2, 64], got [2, 16]")
        << "the model's own";
    EXPECT_EQ(op_failure("the op prim::ListUnpack in 'rows'", "Expected 3 elements in a list but found 4"),
              "the op prim::ListUnpack in 'rows' fails: Expected 3 elements in a list but found 4; if the model was "
              "traced, it has the path that its example took: script the part whose path depends on values");
    EXPECT_EQ(
        op_failure("the op aten::masked_fill in 'a'",
                   "value cannot be converted to type c10::BFloat16 without overflow"),
        "the op aten::masked_fill in 'a' fails: value cannot be converted to type c10::BFloat16 without overflow; "
        "if the model was traced, it has the dtypes that its example had: trace it under torch.autocast of "
        "train.precision");
    const std::string out =
        "div(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
        "requires grad";
    EXPECT_EQ(
        op_failure("the op aten::div in 'c'", out + "."),
        "the op aten::div in 'c' fails: " + out +
            "; a traced model does not know of torch.no_grad, under which such functions may be called (as in "
            "spectral_norm): compute what they write of value.detach(), script the model, or take weight_norm or a "
            "scripted layer of your own in place of spectral_norm");
}

constexpr const char* kOfCards =
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 139.80 GiB of which 1.72 GiB is "
    "free. If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True";

std::string text_of_cards(const std::string& words) {
    return "the device has no memory left: " + words +
           "; use more stages, smaller microbatches (a larger pipeline.num_microbatches), pipeline.recompute, or fewer "
           "ranks a card";
}

void expect_known(const std::exception& error, ErrorKind kind, const std::string& text) {
    try {
        throw_if_known(error);
        FAIL() << "it is known: " << error.what();
    } catch (const Error& known) {
        EXPECT_EQ(known.kind(), kind);
        EXPECT_EQ(std::string(known.what()), text);
    }
}

void expect_memory(const std::exception& error) {
    expect_known(error, ErrorKind::OutOfMemory,
                 text_of_cards("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 139.80 "
                               "GiB of which 1.72 GiB is free"));
}

TEST(TorchErrors, ADevicesErrorKeepsItsWords) {
    try {
        C10_THROW_ERROR(OutOfMemoryError, kOfCards);
    } catch (const std::exception& error) {
        expect_memory(error);
    }
}

TEST(TorchErrors, AnOpOfAModelPassesThemOnInsideOthers) {
    expect_memory(std::runtime_error("The following operation failed in the TorchScript interpreter.\nTraceback\n" +
                                     std::string("RuntimeError: ") + kOfCards + "\n"));
}

/// An error of CUDA as LibTorch 2.11 has it.
std::runtime_error of_cuda(const std::string& words) {
    return std::runtime_error("CUDA error: " + words +
                              "\nCUDA kernel errors might be asynchronously reported at some other API call, so the "
                              "stacktrace below might be incorrect.\n");
}

/// What run_known throws when `thrown` is in it.
template <typename Thrown>
std::string text_of_run(const Thrown& thrown) {
    try {
        run_known([&] { throw thrown; }, "the update of step 3: ");
    } catch (const std::exception& error) {
        return error.what();
    }
    return "nothing";
}

TEST(TorchErrors, WhatIsKnownSaysWhere) {
    EXPECT_EQ(text_of_run(c10::OutOfMemoryError({__func__, __FILE__, 1}, kOfCards)).find("the update of step 3: the "),
              0);
    EXPECT_EQ(text_of_run(Error(ErrorKind::OutOfMemory, "stage 1, B: no memory")), "stage 1, B: no memory")
        << "it says where already";
    const std::string unknown = text_of_run(c10::Error({__func__, __FILE__, 1}, "shapes do not fit"));
    EXPECT_EQ(unknown.find("shapes do not fit"), 0) << unknown;
    EXPECT_NO_THROW(run_known([] {}));
}

TEST(TorchErrors, CudaWantsMemoryByItselfToo) {
    expect_known(of_cuda("out of memory"), ErrorKind::OutOfMemory, text_of_cards("CUDA error: out of memory"));
    for (const std::string blas : {"CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
                                   "CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`"}) {
        expect_known(of_cuda(blas), ErrorKind::OutOfMemory, text_of_cards("CUDA error: " + blas));
    }
    const std::string dnn = "cuDNN error: CUDNN_STATUS_ALLOC_FAILED";
    expect_known(std::runtime_error(dnn), ErrorKind::OutOfMemory, text_of_cards(dnn));
}

TEST(TorchErrors, ACardSaysLateWhatAnOpCannotTake) {
    expect_known(of_cuda("device-side assert triggered"), ErrorKind::BadData,
                 "the model fails: an op on the card was given what it cannot take, most often an index out of range "
                 "(CUDA error: device-side assert triggered; the card's own words stand above); it ran here or before; "
                 "try mesh.device = \"cpu\", or CUDA_LAUNCH_BLOCKING=1 in the environment, to learn where");
}

TEST(TorchErrors, AnOpWithoutAnExactKernelIsNamed) {
    const std::string words =
        "grid_sampler_2d_backward_cuda does not have a deterministic implementation, but you set "
        "'torch.use_deterministic_algorithms(True)'. You can turn off determinism just for this operation";
    for (const char* begin : {"", "The following operation failed in the TorchScript interpreter.\nRuntimeError: "}) {
        expect_known(
            std::runtime_error(begin + words), ErrorKind::BadData,
            "the model fails: grid_sampler_2d_backward_cuda has no form on cards that gives the same bits every "
            "time; use another op in the model, or mesh.device = \"cpu\"");
    }
}

TEST(TorchErrors, ACardThatHasFailedMayBeStartedAgain) {
    for (const std::string words :
         {"uncorrectable ECC error encountered", "unspecified launch failure", "tensor memory not completely freed"}) {
        expect_known(of_cuda(words), ErrorKind::RankLost,
                     "the card has failed (CUDA error: " + words +
                         "); look for Xid in the kernel's log (dmesg) and start the job again, without this card if it "
                         "fails again");
    }
    EXPECT_NO_THROW(throw_if_known(of_cuda("invalid argument"))) << "a mistake of vpp's own";
}

}  // namespace
}  // namespace vpp
