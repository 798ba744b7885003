#include <cuda_runtime_api.h>

#include "device/cards.hpp"

namespace vpp {

bool has_cuda_parts() {
    return true;
}

std::vector<Card> cuda_cards() {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess) return {};
    std::vector<Card> cards;
    for (int i = 0; i < count; ++i) {
        cudaDeviceProp properties{};
        if (cudaGetDeviceProperties(&properties, i) != cudaSuccess) return {};
        cards.push_back(
            {properties.name, properties.major, properties.minor, static_cast<int64_t>(properties.totalGlobalMem)});
    }
    return cards;
}

std::string cuda_version() {
    constexpr int kMajor = 1000, kMinor = 10;
    int version = 0;
    if (cudaRuntimeGetVersion(&version) != cudaSuccess) return "CUDA";
    return "CUDA " + std::to_string(version / kMajor) + "." + std::to_string(version % kMajor / kMinor);
}

}  // namespace vpp
