#include "engine/recompute_choice.hpp"

#include <vector>

#include "base/error.hpp"
#include "base/suggest.hpp"

namespace vpp {

namespace {

std::vector<std::string> split_at_colons(const std::string& text) {
    std::vector<std::string> words{""};
    for (char letter : text) {
        if (letter == ':')
            words.emplace_back();
        else
            words.back() += letter;
    }
    return words;
}

/// 0 for what is no such number.
int64_t to_count(const std::string& digits) {
    const bool good = !digits.empty() && digits.size() <= 6 && digits.find_first_not_of("0123456789") == digits.npos;
    return good ? std::stoll(digits) : 0;
}

}  // namespace

RecomputePlan recompute_from_text(const std::string& text, const RecomputePlan& own) {
    const auto refuse = [&](bool wrong) {
        if (!wrong) return;
        throw Error(
            ErrorKind::CommandLine,
            "--recompute takes none, stage, units, units:N or modules:GLOB:..., with :except_last behind them (got " +
                printable(text) + ")");
    };
    std::vector<std::string> words = split_at_colons(text);
    RecomputePlan recompute;
    recompute.what = words.front();
    words.erase(words.begin());
    const std::string& what = recompute.what;
    refuse(what != "none" && what != "stage" && what != "units" && what != "modules");
    if (!words.empty() && words.back() == "except_last" && what != "none") {
        recompute.except_last = true;
        words.pop_back();
    }
    for (const std::string& word : words) refuse(word.empty());
    if (what == "units" && !words.empty()) {
        refuse(words.size() > 1 || to_count(words[0]) == 0);
        recompute.every = to_count(words[0]);
    } else if (what == "units") {
        recompute.every = own.every;
    } else if (what == "modules") {
        recompute.modules = words.empty() ? own.modules : words;
        if (!recompute.modules.empty()) return recompute;
        throw Error(ErrorKind::CommandLine,
                    "--recompute modules needs pipeline.recompute.modules in the plan; try --recompute modules:GLOB");
    } else {
        refuse(!words.empty());
    }
    return recompute;
}

}  // namespace vpp
