#include <cuda_runtime_api.h>

#include <cstdio>

#include "base/error.hpp"
#include "device/cards.hpp"

namespace vpp {

namespace {

/// "GPU-" and 8-4-4-4-12 hexadecimal digits.
std::string id_of(const cudaUUID_t& uuid) {
    constexpr const char* kDigits = "0123456789abcdef";
    std::string text = "GPU-";
    for (size_t i = 0; i < sizeof(uuid.bytes); ++i) {
        if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
        const auto byte = static_cast<unsigned char>(uuid.bytes[i]);
        text += kDigits[byte >> 4];
        text += kDigits[byte & 15];
    }
    return text;
}

/// Domain, bus and device of PCI.
std::string slot_of(const cudaDeviceProp& properties) {
    char text[32];
    std::snprintf(text, sizeof text, "%04x:%02x:%02x", static_cast<unsigned>(properties.pciDomainID),
                  static_cast<unsigned>(properties.pciBusID), static_cast<unsigned>(properties.pciDeviceID));
    return text;
}

/// Where there is none, CUDA's calls say that it is too old.
bool has_driver() {
    int version = 0;
    return cudaDriverGetVersion(&version) == cudaSuccess && version > 0;
}

/// A driver that is too old, cards that have failed: not the same as a machine without cards.
void check_starts(cudaError_t result) {
    if (result == cudaSuccess) return;
    throw Error(ErrorKind::MissingInput, std::string("CUDA does not start (") + cudaGetErrorString(result) +
                                             "); look at nvidia-smi, or set mesh.device = \"cpu\" to go on without it");
}

}  // namespace

bool has_cuda_parts() {
    return true;
}

std::vector<Card> cuda_cards() {
    int count = 0;
    const cudaError_t counted = cudaGetDeviceCount(&count);
    if (counted == cudaErrorNoDevice || !has_driver()) return {};
    check_starts(counted);
    std::vector<Card> cards;
    for (int i = 0; i < count; ++i) {
        cudaDeviceProp properties{};
        check_starts(cudaGetDeviceProperties(&properties, i));
        cards.push_back({properties.name, properties.major, properties.minor,
                         static_cast<int64_t>(properties.totalGlobalMem), id_of(properties.uuid), slot_of(properties)});
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
