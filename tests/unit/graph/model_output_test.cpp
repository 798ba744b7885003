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

}  // namespace
}  // namespace vpp
