#include "examples/sentences.hpp"

#include <array>
#include <string_view>

#include "base/random.hpp"

namespace vpp {

namespace {

using Words = std::array<std::string_view, 8>;

constexpr Words kAdjectives{"small", "old", "quiet", "red", "happy", "tired", "brave", "young"};
constexpr Words kNouns{"cat", "farmer", "river", "garden", "teacher", "bird", "house", "horse"};
constexpr Words kVerbs{"sees", "follows", "likes", "forgets", "paints", "finds", "hears", "leaves"};
constexpr Words kPlaces{"near the",    "behind the", "above the", "beside the",
                        "without the", "with the",   "for the",   "after the"};
constexpr size_t kWordsOfSentence = 6;

/// "the old cat sees the small river near the garden."
std::string sentence(uint64_t key) {
    constexpr std::array<const Words*, kWordsOfSentence> kOrder{&kAdjectives, &kNouns, &kVerbs,
                                                                &kAdjectives, &kNouns, &kPlaces};
    std::string text = "the";
    for (size_t i = 0; i < kOrder.size(); ++i) {
        const std::string_view word = (*kOrder[i])[combine_key(key, i) % kOrder[i]->size()];
        text += ' ';
        text += word;
        if (kOrder[i] == &kVerbs) text += " the";
    }
    text += ' ';
    text += kNouns[combine_key(key, kOrder.size()) % kNouns.size()];
    return text + ".\n";
}

}  // namespace

std::string make_sentences(size_t num_bytes, uint64_t seed) {
    std::string text;
    for (uint64_t line = 0; text.size() < num_bytes; ++line) text += sentence(combine_key(mix64(seed), line));
    text.resize(num_bytes);
    return text;
}

}  // namespace vpp
