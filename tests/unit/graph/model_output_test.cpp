// Text of a model cannot steer a terminal.
#include "graph/model_output.hpp"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/runtime/print_handler.h>

namespace vpp {
namespace {

TEST(ModelOutput, ControlBytesOfPrintsAndWarningsAreReplaced) {
    print_models_plainly();
    ::testing::internal::CaptureStderr();
    ::testing::internal::CaptureStdout();
    torch::jit::getPrintHandler()("one\x1b[2J\ntwo\r\n");
    TORCH_WARN("three\x1b]0;title\x07");
    const std::string text = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    EXPECT_EQ(text.find('\x07'), std::string::npos);
    EXPECT_NE(text.find("one?[2J\ntwo?\n"), std::string::npos) << text;
    EXPECT_NE(text.find("three?]0;title?"), std::string::npos) << text;
    EXPECT_EQ(::testing::internal::GetCapturedStdout(), "") << "standard output is for results";
}

TEST(ModelOutput, AWarningIsSaidOnce) {
    print_models_plainly();
    ::testing::internal::CaptureStderr();
    for (int microbatch = 0; microbatch < 3; ++microbatch) TORCH_WARN("masks of two types");
    TORCH_WARN("masks of three types");
    print_models_plainly();
    TORCH_WARN("masks of two types");
    EXPECT_EQ(::testing::internal::GetCapturedStderr(),
              "vpp: warning of LibTorch or the model: masks of two types\n"
              "vpp: warning of LibTorch or the model: masks of three types\n");
}

}  // namespace
}  // namespace vpp
