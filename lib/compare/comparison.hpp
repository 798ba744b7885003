#pragma once
// Runs side by side, as a plain value: what they were told differently, and what came of it. Text, JSON and plots are
// made from it.
#include <string>
#include <vector>

#include "report/run_record.hpp"
#include "report/run_summary.hpp"
#include "report/settings.hpp"

namespace vpp {

struct ComparedRun {
    std::string mark;  ///< stands for the run in tables and plots: "A"
    RecordedRun record;
    RunSummary summary;
    std::string state;  ///< how far it came, in few words: "finished", "failed with 79"
};

struct Comparison {
    std::vector<ComparedRun> runs;
    std::vector<Difference> differences;  ///< settings; a value for each run
};

/// The runs in their order, with the states that their folders tell.
Comparison compare_runs(std::vector<RecordedRun> runs);

/// "A" to "Z", "AA", "AB", ... as columns of a spreadsheet.
std::string run_mark(size_t run);

}  // namespace vpp
