#include "base/glob.hpp"

#include <algorithm>
#include <cstddef>

namespace vpp {

bool glob_matches(std::string_view pattern, std::string_view name) {
    // Linear with one remembered star: on a mismatch the last '*' takes one character more.
    constexpr size_t kNone = std::string_view::npos;
    size_t p = 0, n = 0, star = kNone, star_name = 0;
    while (n < name.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            star_name = n;
        } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
            ++p, ++n;
        } else if (star != kNone) {
            p = star + 1;
            n = ++star_name;
        } else {
            return false;
        }
    }
    while (p < pattern.size() && pattern[p] == '*') ++p;
    return p == pattern.size();
}

bool any_glob_matches(const std::vector<std::string>& patterns, std::string_view name) {
    return std::ranges::any_of(patterns, [&](const std::string& pattern) { return glob_matches(pattern, name); });
}

}  // namespace vpp
