#include "base/units.hpp"

#include <cmath>
#include <cstdio>

namespace vpp {

namespace {

constexpr double kLongestDuration = 1e15;  // seconds; beyond it, and for no number at all, a duration says nothing

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

std::string count_text(double count) {
    static constexpr const char* kNames[] = {"", " K", " M", " G", " T", " P"};
    return scaled(count, 1000, kNames, 6);
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

std::string fixed_text(double value, int decimals) {
    char text[64];
    std::snprintf(text, sizeof text, "%.*f", decimals, value);
    return text;
}

}  // namespace vpp
