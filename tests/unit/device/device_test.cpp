#include "device/device.hpp"

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.hpp"
#include "support/far_device.hpp"

namespace vpp {
namespace {

const std::vector<Card> kTwo{{"NVIDIA H200", 9, 0, int64_t{140} << 30}, {"NVIDIA H200", 9, 0, int64_t{140} << 30}};

TEST(Device, TheKindsAreThoseOfTheBuild) {
    const std::vector<std::string> kinds = device_kinds();
    EXPECT_EQ(std::ranges::count(kinds, "cuda"), has_cuda_parts() ? 1 : 0);
    EXPECT_EQ(std::ranges::count(kinds, "cpu") + std::ranges::count(kinds, "auto"), 2);
}

TEST(Device, AutoIsACardWhereThereIsOne) {
    EXPECT_EQ(resolve_device_kind("auto", {}), "cpu");
    EXPECT_EQ(resolve_device_kind("auto", kTwo), "cuda");
    EXPECT_EQ(resolve_device_kind("cpu", kTwo), "cpu");
    try {
        resolve_device_kind("cuda", {});
        FAIL() << "there is no card";
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::MissingInput);
        EXPECT_NE(std::string(error.what())
                      .find("mesh.device = \"cuda\", but this process sees no card; look at "
                            "nvidia-smi and CUDA_VISIBLE_DEVICES, or set mesh.device = \"cpu\""),
                  std::string::npos);
    }
}

TEST(Device, RanksOfAHostTakeItsCardsInTurn) {
    EXPECT_EQ(device_of_rank("cpu", 3, kTwo), at::Device(at::kCPU));
    for (int rank = 0; rank < 4; ++rank) {
        const at::Device device = device_of_rank("cuda", rank, kTwo);
        EXPECT_TRUE(device.is_cuda());
        EXPECT_EQ(device.index(), rank % 2);
    }
}

TEST(Device, ExactKernelsAreAskedForOffTheCpuOnly) {
    at::Context& context = at::globalContext();
    context.setDeterministicAlgorithms(false, false);
    use_exact_kernels(at::kCPU);
    EXPECT_FALSE(context.deterministicAlgorithms()) << "the CPU's kernels need nothing";
    use_exact_kernels({at::kCUDA, 0});
    EXPECT_TRUE(context.deterministicAlgorithms());
    EXPECT_FALSE(context.deterministicAlgorithmsWarnOnly()) << "an op without such a kernel fails";
    EXPECT_TRUE(context.deterministicCuDNN());
    EXPECT_FALSE(context.benchmarkCuDNN());
    EXPECT_FALSE(context.allowTF32CuBLAS());
    EXPECT_FALSE(context.allowTF32CuDNN());
    EXPECT_FALSE(context.userEnabledCuDNNSDP());
    context.setDeterministicAlgorithms(false, false);
}

TEST(Device, APlanForCardsIsLookedAtWithoutOne) {
    const std::vector<Card> one(1);
    EXPECT_TRUE(planned_device("cpu", one).is_cpu());
    EXPECT_TRUE(planned_device("cuda", {}).is_cuda());
    EXPECT_TRUE(planned_device("auto", one).is_cuda());
    EXPECT_TRUE(planned_device("auto", {}).is_cpu());
}

TEST(Device, OneThatDoesNotStartIsSaidInLibTorchsWords) {
    start_device(at::kCPU);
    start_device(test::device_beside_cpu());
    if (!cuda_cards().empty()) GTEST_SKIP() << "there is a card";
    try {
        start_device({at::kCUDA, 0});
        FAIL() << "there is no card";
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::MissingInput);
        EXPECT_TRUE(std::string(error.what()).starts_with("the device cuda:0 does not start (")) << error.what();
        EXPECT_TRUE(std::string(error.what()).ends_with("); set mesh.device = \"cpu\" to go on without it"));
    }
}

TEST(Device, TheTextSaysWhatDecidesBits) {
    EXPECT_EQ(device_text(at::kCPU, {}), "");
    EXPECT_EQ(device_text({at::kCUDA, 1}, kTwo), "NVIDIA H200 (9.0), " + cuda_version());
}

}  // namespace
}  // namespace vpp
