#include "device/device.hpp"

#include <ATen/Context.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <atomic>

#include "base/error.hpp"
#include "device/exact_kernels.hpp"

namespace vpp {

namespace {

std::atomic<bool> card_is_started{false};

}  // namespace

std::vector<std::string> device_kinds() {
    std::vector<std::string> kinds{"auto", "cpu"};
    if (has_cuda_parts()) kinds.emplace_back("cuda");
    return kinds;
}

std::string resolve_device_kind(const std::string& kind, const std::vector<Card>& cards) {
    if (kind == "auto") return cards.empty() ? "cpu" : "cuda";
    if (kind == "cuda" && cards.empty()) {
        throw Error(ErrorKind::MissingInput,
                    "mesh.device = \"cuda\", but this process sees no card; look at nvidia-smi and "
                    "CUDA_VISIBLE_DEVICES, or set mesh.device = \"cpu\"");
    }
    return kind;
}

at::Device device_of_rank(const std::string& kind, int local_rank, const std::vector<Card>& cards) {
    if (kind == "cpu") return at::kCPU;
    check(kind == "cuda" && !cards.empty(), "a device is the CPU or one of the cards");
    return {at::kCUDA, static_cast<at::DeviceIndex>(static_cast<size_t>(local_rank) % cards.size())};
}

KnownCards known_cards() {
    try {
        return {cuda_cards(), ""};
    } catch (const Error& error) {
        return {{}, error.what()};
    }
}

at::Device planned_device(const std::string& kind, const std::vector<Card>& cards) {
    const bool on_card = kind == "cuda" || (kind == "auto" && !cards.empty());
    return on_card ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU);
}

void start_device(at::Device device) {
    if (device.is_cpu()) return;
    card_is_started = true;
    try {
        at::globalContext().lazyInitDevice(device.type());
        c10::impl::VirtualGuardImpl(device.type()).setDevice(device);
    } catch (const c10::Error& error) {
        throw Error(ErrorKind::MissingInput, "the device " + device.str() + " does not start (" +
                                                 error.what_without_backtrace() +
                                                 "); set mesh.device = \"cpu\" to go on without it");
    }
}

bool has_started_card() {
    return card_is_started;
}

void use_exact_kernels(at::Device device) {
    if (device.is_cpu()) return;
    at::Context& context = at::globalContext();
    context.setDeterministicAlgorithms(true, /*warn_only=*/false);
    // New memory is not read before it is written; filling it would cost time and hide nothing.
    context.setDeterministicFillUninitializedMemory(false);
    context.setDeterministicCuDNN(true);
    context.setBenchmarkCuDNN(false);
    context.setAllowTF32CuBLAS(false);
    context.setAllowTF32CuDNN(false);
    context.setSDPUseCuDNN(false);
    if (device.is_cuda()) take_over_inexact_kernels();
}

std::string device_text(at::Device device, const std::vector<Card>& cards) {
    if (!device.is_cuda()) return "";
    const Card& card = cards.at(static_cast<size_t>(device.index()));
    return card.name + " (" + std::to_string(card.major) + "." + std::to_string(card.minor) + "), " + cuda_version();
}

}  // namespace vpp
