#pragma once
// Did-you-mean: the valid word nearest to a mistyped one.
#include <span>
#include <string>
#include <string_view>

namespace vpp {

/// Damerau-Levenshtein distance (optimal string alignment), case ignored.
int edit_distance(std::string_view a, std::string_view b);

/// The nearest of `words` if it is near enough to be meant (a third of the length, at least 2 edits, 1 of three
/// letters) and not changed in every letter; else empty.
std::string nearest_word(std::string_view word, std::span<const std::string> words);

/// "; did you mean 'x'?" or an empty text.
std::string did_you_mean(std::string_view word, std::span<const std::string> words);

}  // namespace vpp
