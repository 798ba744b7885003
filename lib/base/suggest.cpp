#include "base/suggest.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <vector>

#include "base/error.hpp"

namespace vpp {

namespace {
constexpr size_t kLongestWord = 200;  // longer ones are never suggested for; bounds the quadratic table

bool same_letter(char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}
}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
    const size_t columns = b.size() + 1;
    std::vector<int> before(columns), last(columns), now(columns);
    for (size_t j = 0; j < columns; ++j) last[j] = static_cast<int>(j);
    for (size_t i = 1; i <= a.size(); ++i) {
        now[0] = static_cast<int>(i);
        for (size_t j = 1; j < columns; ++j) {
            const int substitute = last[j - 1] + (same_letter(a[i - 1], b[j - 1]) ? 0 : 1);
            now[j] = std::min({last[j] + 1, now[j - 1] + 1, substitute});
            const bool swapped = i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) && same_letter(a[i - 2], b[j - 1]);
            if (swapped) now[j] = std::min(now[j], before[j - 2] + 1);
        }
        std::swap(before, last);
        std::swap(last, now);
    }
    return last[columns - 1];
}

std::string nearest_word(std::string_view word, std::span<const std::string> words) {
    if (word.size() > kLongestWord) return "";
    std::string best;
    const int farthest = word.size() <= 3 ? 1 : std::max(2, static_cast<int>(word.size()) / 3);
    int best_distance = farthest + 1;
    for (const std::string& candidate : words) {
        if (candidate.size() > kLongestWord) continue;
        const int distance = edit_distance(word, candidate);
        const bool keeps_a_letter = distance < static_cast<int>(std::max(word.size(), candidate.size()));
        if (keeps_a_letter && distance < best_distance) {
            best = candidate;
            best_distance = distance;
        }
    }
    return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> words) {
    const std::string nearest = nearest_word(word, words);
    return nearest.empty() ? "" : "; did you mean '" + printable(nearest) + "'?";
}

}  // namespace vpp
