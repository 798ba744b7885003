#include <algorithm>
#include <cctype>
#include <map>

#include "base/error.hpp"
#include "base/shell.hpp"
#include "base/units.hpp"
#include "schedule/csv.hpp"
#include "schedule/size.hpp"

namespace vpp {

namespace {

constexpr int kMostRanks = 1 << 16;

struct CellPlace {
    int line = 0;
    int cell = 0;
};

/// What is known of one stage while rows are read.
struct StageRow {
    CellPlace first;
    int num_forwards = 0;
};

class Reader {
  public:
    Reader(const std::string& source, CsvDialect dialect) : dialect_(dialect) {
        file_.source = source;
        file_.schedule.name = "CUSTOM";
    }

    ScheduleFile read(std::string_view text) {
        for_each_csv_cell(text, [this](int line, int cell, std::string_view inner) {
            if (line > kMostRanks) return;
            open_row(line);
            is_blank_.back() = is_blank_.back() && inner.empty();
            if (cell > 0) read_cell({line, cell}, inner);
        });
        close_row();
        throw_problems();
        drop_blank_end();
        check_rows();
        check_stages();
        finish();
        return std::move(file_);
    }

  private:
    void add_problem(CellPlace place, const std::string& message) {
        if (problems_.size() >= kMostProblems) return;
        const std::string prefix = place.cell > 0 ? "cell " + std::to_string(place.cell) + " " : "";
        problems_.push_back({prefix + message, SourcePosition{file_.source, place.line, place.cell, ""}});
    }
    void throw_problems() {
        if (!problems_.empty()) throw Error(ErrorKind::BadData, problems_);
    }
    [[noreturn]] void refuse(const std::string& message) {
        throw Error(ErrorKind::BadData, message, SourcePosition{file_.source, 0, 0, ""});
    }

    void open_row(int line) {
        if (static_cast<size_t>(line) == rows_.size()) return;
        if (!rows_.empty()) close_row();
        if (line == kMostRanks) {
            add_problem({line, 0}, "the file has too many lines (expected a line for each rank, at most " +
                                       std::to_string(kMostRanks - 1) + ")");
        }
        rows_.emplace_back();
        is_blank_.push_back(true);
        file_.cells.emplace_back();
        file_.idle_before.emplace_back();
    }
    void close_row() {
        if (!rows_.empty()) file_.idle_before.back().push_back(idle_);
        idle_ = 0;
    }

    /// Rows of nothing but blanks and commas are no ranks there.
    void drop_blank_end() {
        while (!rows_.empty() && is_blank_.back()) {
            rows_.pop_back();
            is_blank_.pop_back();
            file_.cells.pop_back();
            file_.idle_before.pop_back();
        }
    }

    void read_cell(CellPlace place, std::string_view inner) {
        const CsvCell cell = parse_csv_cell(inner, dialect_);
        if (!cell.problem.empty()) {
            constexpr size_t kShownOfCell = 40;
            return add_problem(place, "'" + printable(inner.substr(0, kShownOfCell)) + "': " + cell.problem);
        }
        if (cell.is_marker) ++file_.num_dropped_markers;
        if (cell.num_actions == 0 && !cell.is_marker) ++idle_;
        for (int i = 0; i < cell.num_actions; ++i) add(place, cell.actions[static_cast<size_t>(i)]);
    }

    void add(CellPlace place, const Action& action) {
        StageRow& stage = stages_.try_emplace(action.stage, StageRow{place, 0}).first->second;
        if (stage.first.line != place.line) {
            add_problem(place, "'" + csv_cell_text(action, false) + "': stage " + std::to_string(action.stage) +
                                   " is on rank " + std::to_string(stage.first.line - 1) + " already (line " +
                                   std::to_string(stage.first.line) + ", cell " + std::to_string(stage.first.cell) +
                                   "); a stage stands in one row only");
        }
        if (action.kind == ActionKind::F) ++stage.num_forwards;
        file_.is_lowered = file_.is_lowered || is_transfer(action.kind);
        has_backward_ = has_backward_ || (is_computing(action.kind) && action.kind != ActionKind::F);
        if (action.kind != ActionKind::ReduceGrad) last_microbatch_ = std::max(last_microbatch_, action.microbatch);
        rows_.back().push_back(action);
        file_.cells.back().push_back(place.cell);
        file_.idle_before.back().push_back(idle_);
        idle_ = 0;
    }

    void check_rows() {
        if (stages_.empty()) refuse("the file has no actions (expected a line for each rank, as in 0F0,0B0)");
        for (size_t row = 0; row < rows_.size(); ++row) {
            if (!rows_[row].empty()) continue;
            add_problem({static_cast<int>(row) + 1, 0},
                        "the line has no actions, and would be rank " + std::to_string(row) +
                            " (a line is a rank, and every rank has actions); take the line out");
        }
        throw_problems();
    }

    /// Every stage 0..S-1 is there, with M forwards. Then nothing that is made later is larger than the file.
    void check_stages() {
        int expected = 0;
        for (const auto& [stage, row] : stages_) {
            if (stage != expected) {
                refuse("stage " + std::to_string(expected) + " has no actions (the file names stages up to " +
                       std::to_string(stages_.rbegin()->first) + ")");
            }
            ++expected;
        }
        for (const auto& [stage, row] : stages_) {
            if (row.num_forwards == last_microbatch_ + 1) continue;
            add_problem(row.first, "stage " + std::to_string(stage) + " has " +
                                       counted_text(row.num_forwards, "forward") + " in its row (expected " +
                                       std::to_string(int64_t{last_microbatch_} + 1) +
                                       ", one for each microbatch 0 to " + std::to_string(last_microbatch_) + ")");
        }
        throw_problems();
    }

    void finish() {
        Schedule& schedule = file_.schedule;
        schedule.num_ranks = static_cast<int>(rows_.size());
        schedule.num_microbatches = last_microbatch_ + 1;
        for (const auto& [stage, row] : stages_) schedule.rank_of_stage.push_back(row.first.line - 1);
        schedule.actions = std::move(rows_);
        schedule.forward_only = !has_backward_;
        if (!file_.is_lowered) return;
        for (std::vector<int>& row : file_.idle_before) {
            for (int& idle : row) {
                file_.num_dropped_idle += idle;
                idle = 0;
            }
        }
    }

    CsvDialect dialect_;
    ScheduleFile file_;
    ActionLists rows_;
    std::vector<bool> is_blank_;  // beside rows_
    std::map<int, StageRow> stages_;
    int idle_ = 0;  // idle cells since the last action of the row
    int last_microbatch_ = 0;
    bool has_backward_ = false;
    std::vector<Problem> problems_;
};

}  // namespace

CsvDialect find_csv_dialect(std::string_view text) {
    bool has_old_full = false, has_b = false, has_i = false, has_w = false;
    for_each_csv_cell(text, [&](int, int, std::string_view cell) {
        const auto is_letter = [](char c) { return c >= 'A' && c <= 'Z'; };
        for (auto at = cell.begin(); at != cell.end();) {
            at = std::find_if(at, cell.end(), is_letter);
            const auto end = std::find_if(at, cell.end(), [&](char c) { return !is_letter(c) && c != '_'; });
            const std::string_view word(cell.data() + (at - cell.begin()), static_cast<size_t>(end - at));
            has_old_full = has_old_full || word == "BW";
            has_b = has_b || word == "B";
            has_i = has_i || word == "I";
            has_w = has_w || word == "W";
            at = end;
        }
    });
    return has_old_full || (has_w && has_b && !has_i) ? CsvDialect::Old : CsvDialect::Now;
}

ScheduleFile read_schedule_csv(std::string_view text, const std::string& source) {
    if (find_csv_dialect(text) == CsvDialect::Old) {
        throw Error(ErrorKind::BadData,
                    "the file is in the old dialect (B is the input gradient, BW the full backward; today they are I "
                    "and B); try vpp schedule convert " +
                        shell_quoted(source) + " > new.csv",
                    SourcePosition{source, 0, 0, ""});
    }
    return Reader(source, CsvDialect::Now).read(text);
}

ScheduleFile read_any_schedule_csv(std::string_view text, const std::string& source) {
    return Reader(source, find_csv_dialect(text)).read(text);
}

std::vector<std::string> ScheduleFile::notes() const {
    std::vector<std::string> notes;
    if (num_dropped_markers > 0) {
        notes.push_back(source + ": dropped " + counted_text(num_dropped_markers, "cell") +
                        " of UNSHARD and RESHARD; stages keep their weights");
    }
    if (num_dropped_idle > 0) {
        notes.push_back(source + ": dropped " + counted_text(num_dropped_idle, "idle cell") +
                        "; a file with transfers has no time steps");
    }
    return notes;
}

}  // namespace vpp
