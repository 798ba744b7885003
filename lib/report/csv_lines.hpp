#pragma once
// The run as a table for spreadsheets: <run>/metrics.csv, a line an event, a column a number (report/metrics.hpp),
// empty cells for numbers of other events and for what is not known.
//
//   step,event,train/loss,train/grad_norm,...,eval/loss,...
//   10,step,3.1415927410125732,1.23,...
//   50,eval,,,...,2.9,...
//
// Numbers read back to the same bits; those that are none are "nan", "inf" and "-inf".
#include <cstdint>
#include <filesystem>
#include <string>

#include "base/log.hpp"
#include "report/append_file.hpp"
#include "report/event.hpp"
#include "report/metrics.hpp"

namespace vpp {

/// The first line, without a line end.
std::string csv_header();

/// Appends the events to a file.
class CsvReporter : public Reporter {
  public:
    /// Writes the header where the file has none.
    /// Requires: what is in the file has these columns (cut_csv_after).
    /// Throws:   Error{Output} as LineFile.
    CsvReporter(std::filesystem::path path, Logger logger);
    void step(const StepEvent& event) override { add(event.step, "step", readings(event)); }
    void evaluation(const EvalEvent& event) override { add(event.step, "eval", readings(event)); }
    void saved(const SaveEvent& event) override { add(event.step, "save", readings(event)); }
    void memory(const MemoryEvent& event) override { add(event.step, "memory", readings(event)); }
    int64_t num_lost() const { return file_.num_lost(); }

  private:
    void add(int64_t step, const char* event, const std::vector<Reading>& readings);

    LineFile file_;
};

/// cut_lines_after (report/append_file.hpp) for such a file. One with other columns, of another version of vpp, is
/// renamed to <path>.1, .2, ... and said in the log.
CutResult cut_csv_after(const std::filesystem::path& path, int64_t step, const Logger& logger);

}  // namespace vpp
