#pragma once
// CRC-32C (Castagnoli), as the records of TensorBoard have it.
#include <cstdint>
#include <string_view>

namespace vpp {

/// Source: RFC 3720, appendix B.4 (polynomial 0x1EDC6F41, reflected).
uint32_t crc32c(std::string_view bytes);

/// The same rotated and shifted, so that the checksum of data that hold checksums says something.
/// Source: TensorFlow, core/lib/hash/crc32c.h.
uint32_t masked_crc32c(std::string_view bytes);

}  // namespace vpp
