#pragma once
// The run as JSON lines, one object an event, for programs: <run>/metrics.jsonl. Every step is kept.
//
//   {"event":"step","step":10,"total_steps":300,"loss":3.1415927410125732,"microbatch_losses":[...],...}
//   {"event":"eval","step":50,"loss":2.9,"samples":512,"seconds":1.2}
//   {"event":"save","step":50,"folder":"runs/gpt/checkpoints/step-00000050","size_bytes":1048576,"seconds":0.1}
//
// Numbers read back to the same bits; those that JSON does not have are the texts "nan", "inf" and "-inf"; what is not
// known is null.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

#include "base/log.hpp"
#include "report/append_file.hpp"
#include "report/event.hpp"

namespace vpp {

/// Of a line, in bytes; an event of 100,000 microbatches has 2 MB.
inline constexpr size_t kLongestLine = size_t{1} << 24;

/// The line of an event, without a line end.
std::string to_json_line(const StepEvent& event);
std::string to_json_line(const EvalEvent& event);
std::string to_json_line(const SaveEvent& event);
std::string to_json_line(const MemoryEvent& event);
std::string to_json_line(const PipelineEvent& event);

/// Appends the events to a file; a reader beside the run finds whole lines only.
class JsonLinesReporter : public Reporter {
  public:
    /// Throws: Error{Output} as LineFile.
    JsonLinesReporter(std::filesystem::path path, Logger logger) : file_(std::move(path), std::move(logger)) {}
    void step(const StepEvent& event) override { file_.append(to_json_line(event)); }
    void evaluation(const EvalEvent& event) override { file_.append(to_json_line(event)); }
    void saved(const SaveEvent& event) override { file_.append(to_json_line(event)); }
    void memory(const MemoryEvent& event) override { file_.append(to_json_line(event)); }
    void pipeline(const PipelineEvent& event) override { file_.append(to_json_line(event)); }
    int64_t num_lost() const { return file_.num_lost(); }

  private:
    LineFile file_;
};

/// cut_lines_after (report/append_file.hpp) for such a file. Damaged is a line that is no JSON object with a step, or
/// is longer than any event.
CutResult cut_after(const std::filesystem::path& path, int64_t step, const Logger& logger);

}  // namespace vpp
