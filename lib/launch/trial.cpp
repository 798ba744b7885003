#include "launch/trial.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/units.hpp"
#include "launch/child.hpp"

namespace vpp {

namespace {

// Every rank loads LibTorch, and there may be more of them than cores.
constexpr std::chrono::milliseconds kTrialLimit{100'000}, kLimitOfRank{500};
constexpr size_t kMostCharacters = 300;

bool is_ruler(std::string_view line) {
    return line.find_first_not_of("-= \t\r") == std::string_view::npos;
}

}  // namespace

namespace detail {

std::string condense_words(std::string_view text) {
    std::string words;
    for (size_t begin = 0; begin < text.size();) {
        const size_t end = std::min(text.find('\n', begin), text.size());
        std::string_view line = text.substr(begin, end - begin);
        begin = end + 1;
        if (is_ruler(line)) continue;
        line.remove_prefix(line.find_first_not_of(" \t"));
        words += (words.empty() ? "" : " ") + printable(line);
    }
    if (words.size() > kMostCharacters) words = words.substr(0, words.rfind(' ', kMostCharacters)) + " ...";
    return words;
}

}  // namespace detail

std::optional<std::string> find_launch_trouble(LaunchRequest request, const HostFacts& host) {
    request.command = {request.command.front(), "--version"};
    std::vector<std::string> line = make_mpirun_line(request, host);
    std::erase(line, "-q");
    const auto limit = kTrialLimit + request.ranks * kLimitOfRank;
    const ChildWords heard = listen_to(line, limit);
    if (heard.timed_out)
        return "it does not start them within " + duration_text(static_cast<double>(limit.count()) / 1e3);
    if (heard.code == 127) return std::string("there is no mpirun; ") + kMpirunRemedy;
    if (heard.code == 0) return std::nullopt;
    const std::string words = detail::condense_words(heard.text);
    return words.empty() ? "it ends with code " + std::to_string(heard.code) : words;
}

}  // namespace vpp
