#pragma once
// Quantities as people read them.
#include <cstdint>
#include <string>

namespace vpp {

/// "512 B", "1.5 KiB", "3.2 GiB"
std::string bytes_text(int64_t num_bytes);
/// "950", "1.2 K", "3.4 M", "5.6 G"
std::string count_text(double count);
/// "12 s", "3 min 05 s", "2 h 07 min"; "-" when it is negative, endless or no number.
std::string duration_text(double seconds);
/// A fixed number of decimals: "0.125"
std::string fixed_text(double value, int decimals);

}  // namespace vpp
