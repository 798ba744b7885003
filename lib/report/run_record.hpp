#pragma once
// A run read back from its folder: what metrics.jsonl and plan.toml tell, for pages and comparisons.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "report/event.hpp"
#include "report/run_end.hpp"
#include "report/settings.hpp"

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

/// What the actions of a stage took in a step, mean over the steps of the newest layout without the first two of every
/// start.
struct StageMean {
    int rank = 0;  ///< of the pipeline
    double forward_ms = 0;
    double backward_ms = 0;
    double transfer_ms = 0;
    double wait_ms = 0;

    double total_ms() const { return forward_ms + backward_ms + transfer_ms + wait_ms; }
};

struct RecordedRun {
    std::string name;               ///< the folder, as it was named
    std::string plan_text;          ///< plan.toml; empty when there is none
    Settings settings;              ///< what it says; empty when it is no TOML
    std::vector<StepEvent> steps;   ///< without the losses of microbatches and the times of stages
    std::vector<StageMean> stages;  ///< by stage; empty when no such step tells them
    std::vector<EvalEvent> evaluations;
    std::vector<SaveEvent> saves;
    std::optional<MemoryEvent> memory;
    std::vector<TimedAction> timeline;  ///< of one step, from profile/timeline.json; empty when there is none
    std::optional<RunEnd> end;          ///< empty while it is under way, and when it was killed
    std::vector<std::string> notes;     ///< what could not be read, a sentence each
};

/// Reads a run folder. What is missing or damaged beside metrics.jsonl is a note.
/// Throws: Error{MissingInput} when the folder has no metrics.jsonl, saying what a run folder is.
RecordedRun read_run(const std::filesystem::path& folder);

/// The actions of a measured step:
///   {"step":12,"actions":[{"rank":0,"stage":0,"microbatch":0,"kind":"F","begin_ms":0.0,"end_ms":1.2},...]}
/// or, of what a card did, card_begin_ms and card_end_ms.
/// Throws: Error{BadData} naming the first entry that is none.
std::vector<TimedAction> timeline_from_json(const std::string& text);

}  // namespace vpp
