#pragma once
// What `vpp doctor` has found, and how it looks: one screen of 80 columns, or JSON.
#include <string>
#include <vector>

namespace vpp {

enum class FindingLevel {
    Ok,
    Note,  ///< works, but a person wants to know
    Bad,   ///< a training would end, or not begin
};

struct Finding {
    FindingLevel level = FindingLevel::Ok;
    std::string topic;   ///< one word: "MPI"
    std::string text;    ///< what is so; lines behind the first are shown as they are (a plan's line and caret)
    std::string remedy;  ///< what to do or type; empty where nothing is to be done
    int code = 0;        ///< of a problem: what train would end with
};

/// The code that train would end with: that of the first problem, since findings are in the order in which it would
/// meet them; 0 without one.
int exit_code_of(const std::vector<Finding>& findings);

/// "no problems, 2 notes"
std::string summary_of(const std::vector<Finding>& findings);

/// A line or more each, wrapped at 80 columns, then the summary. Colour marks the level.
std::string to_text(const std::vector<Finding>& findings, bool colour);

/// {"exit_code": 0, "findings": [{"level": "ok", "topic": ..., "text": ..., "remedy": ..., "code": 0}]}
std::string to_json_text(const std::vector<Finding>& findings);

}  // namespace vpp
