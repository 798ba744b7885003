#pragma once
// Quantities as people read them.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace vpp {

/// "512 B", "1.5 KiB", "3.2 GiB"
std::string bytes_text(int64_t num_bytes);
/// The bytes that a text means: "8GiB", "512 MiB", "1.5 TB", "4096 B"; KB, MB, GB, TB, PB count in thousands, KiB to
/// PiB in 1024s. At most three decimals, rounded down. Empty for any other text, and for 2^62 bytes and more.
std::optional<int64_t> parse_bytes(std::string_view text);
/// The text in the largest unit of 1024s that holds the number exactly: "8GiB", "1000B"; parse_bytes reads it back.
std::string exact_bytes_text(int64_t num_bytes);
/// "950", "1.2 K", "3.4 M", "5.6 G"
std::string count_text(double count);
/// 1 -> "1 stage", 3 -> "3 stages"; `several` is for words that take more than an s: "3 microbatches".
std::string counted_text(int64_t count, const std::string& one, const std::string& several = "");
/// "12 s", "3 min 05 s", "2 h 07 min"; "-" when it is negative, endless or no number.
std::string duration_text(double seconds);
/// By a printf format; "nan" for what is no number, whatever its sign.
std::string formatted(const char* format, double value);
/// A fixed number of decimals: "0.125"
std::string fixed_text(double value, int decimals);

}  // namespace vpp
