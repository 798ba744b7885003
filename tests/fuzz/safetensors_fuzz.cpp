// Safetensors headers from hostile bytes: whatever comes, a whole header or vpp::Error, and every range inside the
// file.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "base/error.hpp"
#include "base/safetensors_header.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const auto file = std::as_bytes(std::span(data, size));
    try {
        uint64_t covered_bytes = 0;
        const vpp::SafetensorsHeader header = vpp::parse_safetensors(file, "input");
        for (const vpp::SafetensorsEntry& entry : header.entries) {
            if (entry.begin_bytes > entry.end_bytes || entry.end_bytes > size) std::abort();
            covered_bytes += entry.end_bytes - entry.begin_bytes;
        }
        if (covered_bytes > size) std::abort();
    } catch (const vpp::Error& error) {
        if (error.kind() != vpp::ErrorKind::BadData) std::abort();
    }
    return 0;
}
