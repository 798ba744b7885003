#include "base/units.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>

namespace vpp {

namespace {

constexpr double kLongestDuration = 1e15;  // seconds; beyond it, and for no number at all, a duration says nothing

constexpr int64_t kKilo = 1000, kKibi = 1024;
constexpr std::pair<std::string_view, int64_t> kByteUnits[] = {
    {"B", 1},
    {"KB", kKilo},
    {"MB", kKilo* kKilo},
    {"GB", kKilo* kKilo* kKilo},
    {"TB", kKilo* kKilo* kKilo* kKilo},
    {"PB", kKilo* kKilo* kKilo* kKilo* kKilo},
    {"KiB", kKibi},
    {"MiB", kKibi* kKibi},
    {"GiB", kKibi* kKibi* kKibi},
    {"TiB", kKibi* kKibi* kKibi* kKibi},
    {"PiB", kKibi* kKibi* kKibi* kKibi* kKibi},
};

std::string scaled(double value, double step, const char* const* names, int num_names) {
    int level = 0;
    bool whole = value == std::floor(value);
    // With one decimal 1023.95 KiB would read "1024.0 KiB".
    while (std::abs(value) >= (whole ? step : step - 0.05) && level + 1 < num_names) {
        value /= step;
        ++level;
        whole = false;
    }
    char text[48];
    std::snprintf(text, sizeof text, whole ? "%.0f%s" : "%.1f%s", value, names[level]);
    return text;
}

}  // namespace

std::string bytes_text(int64_t num_bytes) {
    static constexpr const char* kNames[] = {" B", " KiB", " MiB", " GiB", " TiB", " PiB"};
    return scaled(static_cast<double>(num_bytes), 1024, kNames, 6);
}

std::optional<int64_t> parse_bytes(std::string_view text) {
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    const auto take_digits = [&](size_t most) {
        size_t count = 0;
        while (count < text.size() && is_digit(text[count])) ++count;
        const std::string digits(text.substr(0, count));
        if (count == 0 || count > most) return std::string();
        text.remove_prefix(count);
        return digits;
    };
    const std::string whole = take_digits(18);
    if (whole.empty()) return std::nullopt;
    std::string thousandths = "000";
    if (text.starts_with('.')) {
        text.remove_prefix(1);
        const std::string decimals = take_digits(3);
        if (decimals.empty()) return std::nullopt;
        thousandths.replace(0, decimals.size(), decimals);
    }
    if (text.starts_with(' ')) text.remove_prefix(1);
    const auto unit =
        std::find_if(std::begin(kByteUnits), std::end(kByteUnits), [&](const auto& one) { return text == one.first; });
    if (unit == std::end(kByteUnits)) return std::nullopt;
    const int64_t number = std::stoll(whole);
    // Half of the range leaves room for the decimals.
    if (number > std::numeric_limits<int64_t>::max() / 2 / unit->second) return std::nullopt;
    const int64_t part = std::stoll(thousandths);
    return number * unit->second + unit->second / 1000 * part + unit->second % 1000 * part / 1000;
}

std::string exact_bytes_text(int64_t num_bytes) {
    static constexpr const char* kNames[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    size_t level = 0;
    while (num_bytes > 0 && num_bytes % 1024 == 0 && level + 1 < std::size(kNames)) {
        num_bytes /= 1024;
        ++level;
    }
    return std::to_string(num_bytes) + kNames[level];
}

std::string count_text(double count) {
    static constexpr const char* kNames[] = {"", " K", " M", " G", " T", " P"};
    return scaled(count, 1000, kNames, 6);
}

std::string counted_text(int64_t count, const std::string& one, const std::string& several) {
    return std::to_string(count) + ' ' + (count == 1 ? one : several.empty() ? one + 's' : several);
}

std::string duration_text(double seconds) {
    if (!(seconds >= 0 && seconds < kLongestDuration)) return "-";
    const auto total = static_cast<long long>(std::llround(seconds));
    char text[64];
    if (total < 60) {
        std::snprintf(text, sizeof text, "%lld s", total);
    } else if (total < 3600) {
        std::snprintf(text, sizeof text, "%lld min %02lld s", total / 60, total % 60);
    } else {
        std::snprintf(text, sizeof text, "%lld h %02lld min", total / 3600, total / 60 % 60);
    }
    return text;
}

std::string formatted(const char* format, double value) {
    // printf knows a negative "nan", which says nothing more.
    if (std::isnan(value)) return "nan";
    char text[64];
    std::snprintf(text, sizeof text, format, value);
    return text;
}

std::string fixed_text(double value, int decimals) {
    char text[64];
    std::snprintf(text, sizeof text, "%.*f", decimals, value);
    return text;
}

}  // namespace vpp
