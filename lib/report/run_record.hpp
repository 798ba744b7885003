#pragma once
// A run read back from its folder: what metrics.jsonl and plan.toml tell, for pages and comparisons.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "report/event.hpp"

namespace vpp {

/// When an action of a step ran, in seconds from the start of the step.
struct TimedAction {
    int rank = 0;
    std::string kind;  ///< F, B, I, W; anything else is time in messages
    int stage = 0;
    int microbatch = 0;
    double start_seconds = 0;
    double end_seconds = 0;
};

struct RunRecord {
    std::string name;              ///< the folder, as it was named
    std::string plan_text;         ///< plan.toml; empty when there is none
    std::vector<StepEvent> steps;  ///< without the losses of microbatches
    std::vector<EvalEvent> evaluations;
    std::vector<SaveEvent> saves;
    std::optional<MemoryEvent> memory;
    std::vector<TimedAction> timeline;  ///< of one step, from timeline.json; empty when there is none
    std::vector<std::string> notes;     ///< what could not be read, a sentence each
};

/// Reads a run folder. What is missing or damaged beside metrics.jsonl is a note.
/// Throws: Error{MissingInput} when the folder has no metrics.jsonl, saying what a run folder is.
RunRecord read_run(const std::filesystem::path& folder);

/// The actions of timeline.json:
///   {"step": 12, "actions": [{"rank": 0, "kind": "F", "stage": 0, "microbatch": 0, "start_s": 0.0, "end_s": 0.01},
///   ...]}
/// Throws: Error{BadData} naming the first entry that is none.
std::vector<TimedAction> timeline_from_json(const std::string& text);

}  // namespace vpp
