#pragma once
// Schedules as files: the CSV of torch.distributed.pipelining. A row is a rank (row 1 is rank 0), a cell an action
// (schedule/csv_cell.hpp); no header, no quotes, rows of any length. Every rank has actions: rows without any are
// ignored at the end of a file, and refused before it.
//   0F0,0F1,,0B0,0B1            a file of computing actions: empty cells are idle time steps
//   1F0,1B0,1F1,1B1             (a lowered one has SEND and RECV too; which kind a file is follows from its content)
// Files of the old dialect (2024) say B for I and BW for B; they are refused, or converted when that is asked for.
#include <string>
#include <string_view>
#include <vector>

#include "schedule/csv_cell.hpp"
#include "schedule/schedule.hpp"

namespace vpp {

/// Files above this are refused.
constexpr uint64_t kMostCsvBytes = uint64_t{256} << 20;

/// What a file says. Its schedule is complete in the sense that every stage 0..S-1 stands in one row and has as many
/// forwards as there are microbatches; the rest is proved later (schedule/custom.hpp).
struct ScheduleFile {
    std::string source;  ///< the name of the file, for messages
    Schedule schedule;   ///< named CUSTOM; transfers have edge -1, and peer -1 where the file names no rank
    bool is_lowered = false;
    std::vector<std::vector<int>> cells;  ///< beside schedule.actions: the number of the cell; a pair shares one
    /// Per row the idle cells before each action and, as a last entry, behind them; zeros in a lowered file.
    std::vector<std::vector<int>> idle_before;
    int num_dropped_markers = 0;  ///< UNSHARD and RESHARD
    int num_dropped_idle = 0;     ///< idle cells of a lowered file

    /// What was dropped, in words, a line each.
    std::vector<std::string> notes() const;
};

/// The dialect of a text: Old when a cell says BW, or when there is W beside B but never I.
CsvDialect find_csv_dialect(std::string_view text);

/// Reads a file of today's dialect.
/// A schedule without B, I and W is taken as forward-only.
/// Throws: Error{BadData} with `source:line:cell` for each thing that is wrong, and with the line to type for a file of
///         the old dialect.
ScheduleFile read_schedule_csv(std::string_view text, const std::string& source);

/// Reads a file of either dialect: the step that mends an old one.
ScheduleFile read_any_schedule_csv(std::string_view text, const std::string& source);

/// The file again, with LF: exactly what was read, but for what `notes` names, blanks, CRLF, a byte order mark and
/// blank lines at the end.
std::string to_csv(const ScheduleFile& file);

/// A schedule as a file without idle cells, lowered if it has transfers. The transfers of one action to one rank become
/// one cell; it names the rank where a stage has transfers of that kind with several.
std::string to_csv(const Schedule& schedule);

}  // namespace vpp
