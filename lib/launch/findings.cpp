#include "launch/findings.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "base/units.hpp"
#include "base/wrapped_text.hpp"

namespace vpp {

namespace {

constexpr size_t kLevelWidth = 9, kTopicWidth = 10, kIndent = kLevelWidth + kTopicWidth;

const char* name_of(FindingLevel level) {
    if (level == FindingLevel::Ok) return "ok";
    return level == FindingLevel::Note ? "note" : "problem";
}

const char* colour_of(FindingLevel level) {
    if (level == FindingLevel::Ok) return "\033[32m";
    return level == FindingLevel::Note ? "\033[33m" : "\033[31m";
}

std::string padded(std::string text, size_t width) {
    text.resize(std::max(text.size() + 1, width), ' ');
    return text;
}

/// The first line wrapped; the others as they are.
std::string body(const std::string& text) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string out;
    for (const std::string& line : wrapped_lines(text.substr(0, end), kScreenColumns - kIndent)) {
        out += (out.empty() ? "" : "\n" + std::string(kIndent, ' ')) + line;
    }
    return out + text.substr(end);
}

std::string counted_or_no(size_t number, const std::string& word) {
    return number == 0 ? "no " + word + "s" : counted_text(static_cast<int64_t>(number), word);
}

size_t count(const std::vector<Finding>& findings, FindingLevel level) {
    return static_cast<size_t>(std::ranges::count(findings, level, &Finding::level));
}

}  // namespace

int exit_code_of(const std::vector<Finding>& findings) {
    const auto first = std::ranges::find(findings, FindingLevel::Bad, &Finding::level);
    return first == findings.end() ? 0 : first->code;
}

std::string summary_of(const std::vector<Finding>& findings) {
    const size_t notes = count(findings, FindingLevel::Note);
    const int code = exit_code_of(findings);
    return counted_or_no(count(findings, FindingLevel::Bad), "problem") + ", " + counted_or_no(notes, "note") +
           (code == 0 ? "" : "; train would end with code " + std::to_string(code));
}

std::string to_text(const std::vector<Finding>& findings, bool colour) {
    std::string out;
    for (const Finding& finding : findings) {
        const std::string level = padded(name_of(finding.level), kLevelWidth);
        out += (colour ? colour_of(finding.level) + level + "\033[0m" : level) + padded(finding.topic, kTopicWidth) +
               body(finding.text) + "\n";
        if (finding.remedy.empty()) continue;
        out += two_columns("fix:", finding.remedy, kIndent, kIndent + 5);
    }
    return out + "\n" + summary_of(findings) + "\n";
}

std::string to_json_text(const std::vector<Finding>& findings) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const Finding& finding : findings) {
        list.push_back({{"level", name_of(finding.level)},
                        {"topic", finding.topic},
                        {"text", finding.text},
                        {"remedy", finding.remedy},
                        {"code", finding.code}});
    }
    const nlohmann::ordered_json all{{"exit_code", exit_code_of(findings)}, {"findings", std::move(list)}};
    return json_text(all, 2);
}

}  // namespace vpp
