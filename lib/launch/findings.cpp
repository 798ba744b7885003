#include "launch/findings.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "base/units.hpp"

namespace vpp {

namespace {

constexpr size_t kColumns = 80;
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

/// Breaks a line between words; what follows the first part begins at `indent`, where the first part stands too.
std::string wrapped(const std::string& line, size_t indent) {
    std::string out;
    size_t column = indent;
    for (size_t begin = 0; begin < line.size();) {
        const size_t end = std::min(line.find(' ', begin), line.size());
        const size_t length = end - begin;
        if (column > indent && column + 1 + length > kColumns) {
            out += "\n" + std::string(indent, ' ');
            column = indent;
        } else if (column > indent) {
            out += ' ';
            ++column;
        }
        out += line.substr(begin, length);
        column += length;
        begin = end + 1;
    }
    return out;
}

/// The first line wrapped; the others as they are.
std::string body(const std::string& text) {
    const size_t end = text.find('\n');
    return wrapped(text.substr(0, end), kIndent) + (end == std::string::npos ? "" : text.substr(end));
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
        out += std::string(kIndent, ' ') + "fix: " + wrapped(finding.remedy, kIndent + 5) + "\n";
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
