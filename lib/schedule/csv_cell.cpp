#include "schedule/csv_cell.hpp"

#include <algorithm>
#include <optional>

#include "base/error.hpp"
#include "schedule/size.hpp"

namespace vpp {

namespace {

constexpr size_t kShownLetters = 24;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr std::string_view kOverlap = "OVERLAP_F_B";

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

bool is_word_letter(char c) {
    return (c >= 'A' && c <= 'Z') || c == '_';
}

std::string_view without_blanks(std::string_view text) {
    const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
    while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
    while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
    return text;
}

std::string quoted(std::string_view text) {
    const bool is_long = text.size() > kShownLetters;
    return "'" + printable(text.substr(0, kShownLetters)) + (is_long ? "..'" : "'");
}

/// Takes a single action apart from left to right; the first thing that does not fit becomes the problem.
class SingleReader {
  public:
    SingleReader(std::string_view text, CsvDialect dialect) : rest_(text), dialect_(dialect) {}

    /// An action, or a marker, or a problem.
    std::optional<Action> read() {
        Action action;
        action.stage = number("a stage number");
        const std::string_view word = letters();
        is_marker_ = word == "UNSHARD" || word == "RESHARD";
        if (!is_marker_) action.kind = kind_of(word);
        const bool has_microbatch = !is_marker_ && action.kind != ActionKind::ReduceGrad;
        if (has_microbatch) action.microbatch = number("a microbatch number");
        if (has_microbatch && is_transfer(action.kind)) action.peer = peer(action.kind);
        if (!rest_.empty()) fail("it should end before " + quoted(rest_));
        if (is_marker_ || !problem_.empty()) return std::nullopt;
        return action;
    }

    bool is_marker() const { return is_marker_ && problem_.empty(); }
    const std::string& problem() const { return problem_; }

  private:
    void fail(const std::string& problem) {
        if (problem_.empty()) problem_ = problem;
    }

    std::string_view take(bool (*belongs)(char)) {
        const auto end = std::find_if_not(rest_.begin(), rest_.end(), belongs);
        const std::string_view taken = rest_.substr(0, static_cast<size_t>(end - rest_.begin()));
        rest_.remove_prefix(taken.size());
        return taken;
    }

    std::string_view letters() { return take(is_word_letter); }

    int number(const char* what) {
        const std::string_view digits = take(is_digit);
        int64_t value = 0;
        for (char digit : digits) value = std::min<int64_t>(value * 10 + (digit - '0'), kMostStageMicrobatches);
        if (digits.empty()) {
            fail(std::string("it has no ") + (what + 2) + (rest_.empty() ? "" : " before " + quoted(rest_)));
        } else if (digits.size() > 1 && digits.front() == '0') {
            fail(std::string(what) + " has leading zeros");
        } else if (value >= kMostStageMicrobatches) {
            fail(std::string(what) + " is too large (expected at most " + std::to_string(kMostStageMicrobatches - 1) +
                 ")");
        }
        return static_cast<int>(value);
    }

    ActionKind kind_of(std::string_view word) {
        const bool old = dialect_ == CsvDialect::Old;
        if (old && word == "B") return ActionKind::I;
        if (old && word == "BW") return ActionKind::B;
        const std::optional<ActionKind> kind = kind_from_word(word);
        if (!kind) {
            fail(word.empty() ? "it has no kind of action (F, B, I, W, SEND_F ..) behind the stage"
                              : "no action is called " + quoted(word) +
                                    " (expected F, B, I, W, SEND_F, RECV_F, "
                                    "SEND_B, RECV_B, REDUCE_GRAD, UNSHARD or RESHARD)");
            return ActionKind::F;
        }
        if (old && kind == ActionKind::I) {
            fail(
                "'I' is a word of today's dialect, but other cells are of the old one (B the input gradient, BW the "
                "full backward)");
        }
        return *kind;
    }

    int peer(ActionKind kind) {
        if (rest_.empty() || rest_.front() != (is_send(kind) ? '>' : '<')) return -1;
        rest_.remove_prefix(1);
        return number("a rank number");
    }

    std::string_view rest_;
    CsvDialect dialect_;
    bool is_marker_ = false;
    std::string problem_;
};

CsvCell problem_cell(const std::string& problem) {
    CsvCell cell;
    cell.problem = problem;
    return cell;
}

CsvCell parse_single(std::string_view text, CsvDialect dialect) {
    SingleReader reader(text, dialect);
    const std::optional<Action> action = reader.read();
    CsvCell cell;
    cell.problem = reader.problem();
    cell.is_marker = reader.is_marker();
    if (action) cell.actions[cell.num_actions++] = *action;
    return cell;
}

/// A pair overlaps a forward with something of a backward.
bool overlaps(const Action& one, const Action& other) {
    return is_computing(one.kind) && is_computing(other.kind) &&
           (one.kind == ActionKind::F) != (other.kind == ActionKind::F);
}

CsvCell parse_pair(std::string_view text, CsvDialect dialect) {
    const size_t close = text.find(')');
    if (close == std::string_view::npos) return problem_cell("its '(' is never closed");
    if (text.substr(close + 1) != kOverlap) {
        return problem_cell("behind ')' stands " + quoted(text.substr(close + 1)) + " (expected OVERLAP_F_B)");
    }
    const std::string_view inside = text.substr(1, close - 1);
    const size_t middle = inside.find(';');
    const std::string expected = " (expected two actions, a forward and a backward, as in (0F7;7B3)OVERLAP_F_B)";
    if (middle == std::string_view::npos) return problem_cell("it pairs one action with none" + expected);
    CsvCell pair = parse_single(without_blanks(inside.substr(0, middle)), dialect);
    const CsvCell second = parse_single(without_blanks(inside.substr(middle + 1)), dialect);
    if (!pair.problem.empty()) return problem_cell("in its first half " + pair.problem);
    if (!second.problem.empty()) return problem_cell("in its second half " + second.problem);
    if (pair.num_actions == 0 || second.num_actions == 0 || !overlaps(pair.actions[0], second.actions[0])) {
        return problem_cell("these two cannot overlap" + expected);
    }
    pair.actions[0].paired = true;
    pair.actions[1] = second.actions[0];
    pair.num_actions = 2;
    return pair;
}

}  // namespace

CsvCell parse_csv_cell(std::string_view text, CsvDialect dialect) {
    const std::string_view inner = without_blanks(text);
    if (inner.empty()) return {};
    return inner.front() == '(' ? parse_pair(inner, dialect) : parse_single(inner, dialect);
}

std::string csv_cell_text(const Action& action, bool with_peer) {
    std::string text = std::to_string(action.stage) + word_of(action.kind);
    if (action.kind == ActionKind::ReduceGrad) return text;
    text += std::to_string(action.microbatch);
    if (with_peer) text += (is_send(action.kind) ? '>' : '<') + std::to_string(action.peer);
    return text;
}

std::string csv_pair_text(const Action& first, const Action& second) {
    return '(' + csv_cell_text(first, false) + ';' + csv_cell_text(second, false) + ')' + std::string(kOverlap);
}

void for_each_csv_cell(std::string_view text, const std::function<void(int line, int cell, std::string_view)>& visit) {
    if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
    for (int line = 1; !text.empty(); ++line) {
        const size_t end = std::min(text.find('\n'), text.size());
        std::string_view row = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (!row.empty() && row.back() == '\r') row.remove_suffix(1);
        if (row.empty()) visit(line, 0, row);
        for (int cell = 1; !row.empty(); ++cell) {
            const size_t comma = row.find(',');
            visit(line, cell, without_blanks(row.substr(0, comma)));
            if (comma == std::string_view::npos) break;
            row.remove_prefix(comma + 1);
            if (row.empty()) visit(line, cell + 1, row);
        }
    }
}

}  // namespace vpp
