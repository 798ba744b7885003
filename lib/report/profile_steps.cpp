#include "report/profile_steps.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "base/error.hpp"

namespace vpp {

namespace {

constexpr int64_t kWarmUpSteps = 2;

/// A whole number from 1 on, and nothing else.
std::optional<int64_t> step_number(std::string_view text) {
    int64_t number = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool is_number = problem == std::errc() && end == text.data() + text.size();
    return is_number && number >= 1 ? std::optional(number) : std::nullopt;
}

[[noreturn]] void refuse(const std::string& text, const std::string& what) {
    throw Error(ErrorKind::CommandLine, "--profile " + printable(text) + ": " + what);
}

}  // namespace

ProfileSteps parse_profile_steps(const std::string& text) {
    const size_t dots = text.find("..");
    const bool is_range = dots != std::string::npos;
    const std::optional<int64_t> last = step_number(is_range ? std::string_view(text).substr(dots + 2) : text);
    const std::optional<int64_t> first = is_range ? step_number(std::string_view(text).substr(0, dots)) : 1;
    if (!first || !last) {
        refuse(text, "is no number of steps (expected 5 for five steps after the first two, or 10..12 for these)");
    }
    if (*last < *first)
        refuse(text, "the last step is before the first; try " + std::to_string(*last) + ".." + std::to_string(*first));
    if (*last - *first >= kMostProfiledSteps) {
        refuse(text, "are " + std::to_string(*last - *first + 1) + " steps (expected at most " +
                         std::to_string(kMostProfiledSteps) + ": each is a file)");
    }
    return is_range ? ProfileSteps{*first, *last} : ProfileSteps{0, *last};
}

StepRange profiled_steps(const ProfileSteps& wanted, int64_t done, int64_t total) {
    StepRange steps{wanted.first, wanted.last};
    if (wanted.first == 0) steps = {done + kWarmUpSteps + 1, done + kWarmUpSteps + wanted.last};
    steps.first = std::max(steps.first, done + 1);
    steps.last = std::min(steps.last, total);
    if (steps.first <= steps.last) return steps;
    const std::string text = wanted.first == 0 ? std::to_string(wanted.last)
                                               : std::to_string(wanted.first) + ".." + std::to_string(wanted.last);
    refuse(text, "nothing to profile: this run does the steps " + std::to_string(done + 1) + " to " +
                     std::to_string(total) + (wanted.first == 0 ? ", and its first two are not looked at" : "") +
                     "; name steps as in " + std::to_string(total) + ".." + std::to_string(total));
}

}  // namespace vpp
