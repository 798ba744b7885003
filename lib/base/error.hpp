#pragma once
// Errors that a user can mend (Error) and broken invariants (check). The kinds follow what the reader must do next and
// are the exit codes of the program. Nothing here exits the process; app turns an Error into text and a code.
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace vpp {

/// What went wrong, by what mends it. The value is the exit code.
enum class ErrorKind : int {
    CommandLine = 2,
    BadData = 65,
    MissingInput = 66,
    Mesh = 69,
    Bug = 70,
    OutOfMemory = 71,
    Output = 73,
    Io = 74,
    RankLost = 75,
    RanksDisagree = 76,
    Refused = 77,
    Plan = 78,
    NotFinite = 79,
    VerifyDifference = 80,
    Stopped = 85,
    Interrupted = 130,
};

/// A place in a text that a person wrote: a plan file or a `--set` argument.
struct SourcePosition {
    std::string source;  ///< file name, or "--set"
    int line = 0;        ///< from 1; 0 = no position inside the source
    int column = 0;      ///< from 1
    std::string text;    ///< the line itself, shown with a caret; empty = not shown
};

/// One thing that is wrong: `plan.toml:12:18: message`, the line and a caret.
struct Problem {
    std::string message;  ///< what is wrong (got X, expected Y); try Z
    std::optional<SourcePosition> position;
};

/// The text of a problem as the user sees it; control bytes of the source line are replaced.
std::string to_text(const Problem& problem);

/// An error that a user can mend; holds one or more problems of one kind.
class Error : public std::runtime_error {
  public:
    Error(ErrorKind kind, std::string message, std::optional<SourcePosition> position = std::nullopt);
    Error(ErrorKind kind, std::vector<Problem> problems);

    ErrorKind kind() const { return kind_; }
    const std::vector<Problem>& problems() const { return problems_; }

  private:
    ErrorKind kind_;
    std::vector<Problem> problems_;
};

/// The exit code of a kind.
inline int exit_code(ErrorKind kind) {
    return static_cast<int>(kind);
}

/// Replaces control bytes by '?', so that foreign text cannot steer a terminal.
std::string printable(std::string_view text);

/// Throws Error{Bug} naming the caller when `condition` does not hold. (std::source_location would be the standard's
/// way; clang 14 does not have it.)
void check(bool condition, std::string_view text, const char* file = __builtin_FILE(), int line = __builtin_LINE(),
           const char* function = __builtin_FUNCTION());

}  // namespace vpp
