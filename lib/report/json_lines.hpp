#pragma once
// The run as JSON lines, one object an event, for programs: <run>/metrics.jsonl. Every step is kept.
//
//   {"event":"step","step":10,"total_steps":300,"loss":3.1415927410125732,"microbatch_losses":[...],...}
//   {"event":"eval","step":50,"loss":2.9,"samples":512,"seconds":1.2}
//   {"event":"save","step":50,"folder":"runs/gpt/checkpoints/step-00000050","size_bytes":1048576,"seconds":0.1}
//
// Numbers read back to the same bits; those that JSON does not have are the texts "nan", "inf" and "-inf"; what is not
// known is null.
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/log.hpp"
#include "report/event.hpp"

namespace vpp {

/// The line of an event, without a line end.
std::string to_json_line(const StepEvent& event);
std::string to_json_line(const EvalEvent& event);
std::string to_json_line(const SaveEvent& event);
std::string to_json_line(const MemoryEvent& event);
std::string to_json_line(const PipelineEvent& event);

/// Appends lines to a file, each by one write, so that a reader beside the run never sees two lines mixed.
/// Invariant: what a failed write left of a line is taken off again; a reader finds whole lines only.
class JsonLinesReporter : public Reporter {
  public:
    /// Opens or creates the file. Requires: one reporter a file.
    /// Throws: Error{Output} when that fails, or when the path is a link or no regular file.
    JsonLinesReporter(std::filesystem::path path, Logger logger);
    ~JsonLinesReporter() override;
    JsonLinesReporter(const JsonLinesReporter&) = delete;
    JsonLinesReporter& operator=(const JsonLinesReporter&) = delete;

    void step(const StepEvent& event) override { append(to_json_line(event)); }
    void evaluation(const EvalEvent& event) override { append(to_json_line(event)); }
    void saved(const SaveEvent& event) override { append(to_json_line(event)); }
    void memory(const MemoryEvent& event) override { append(to_json_line(event)); }
    void pipeline(const PipelineEvent& event) override { append(to_json_line(event)); }
    /// Lines that could not be written, on a full disk for one. The first of them is said in the log.
    int64_t num_lost() const { return num_lost_; }

  private:
    void append(std::string line);

    std::filesystem::path path_;
    Logger logger_;
    int fd_ = -1;
    bool is_torn_ = false;  ///< the file ends inside a line
    int64_t num_lost_ = 0;
};

/// What became of the lines of a file.
struct CutResult {
    int64_t num_kept = 0;
    int64_t num_later = 0;    ///< of steps beyond the cut
    int64_t num_damaged = 0;  ///< no JSON object with a step, or longer than any event; the torn last line too
};

/// Drops the lines of steps after `step`, for a run that resumes there: its own lines then follow. Kept lines keep
/// their bytes and their order. Damaged lines are dropped and said in the log; a file that is not there is nothing to
/// cut. The result takes the file's place at once, by a rename: a process that dies meanwhile leaves the old or the new
/// one. Throws: Error{BadData} when it is no regular file, Error{Output, Io} when the new file cannot be written.
CutResult cut_after(const std::filesystem::path& path, int64_t step, const Logger& logger);

}  // namespace vpp
