#pragma once
// The run for TensorBoard: <run>/tensorboard/events.out.tfevents.<seconds>.<host>.<process>, records of three protobuf
// messages (Event, Summary and SessionLog) with a scalar for each number of report/metrics.hpp. LibTorch carries a
// protobuf of its own, so these few fields are encoded here.
// Sources: tensorboard/compat/proto/{event,summary}.proto; TensorFlow's core/lib/io/record_writer.cc for the frames.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.hpp"
#include "report/append_file.hpp"
#include "report/event.hpp"
#include "report/metrics.hpp"

namespace vpp {

/// A record: length, masked CRC-32C of the length, data, masked CRC-32C of the data; numbers little-endian.
std::string tfrecord(std::string_view data);

/// Event with file_version: the first of every file. `wall_time` is in seconds since 1970.
std::string version_message(double wall_time);
/// Event with session_log START: a reader forgets what files before this one say of `step` and later.
std::string session_start_message(double wall_time, int64_t step);
/// Event with a summary: a float a known number.
std::string scalars_message(double wall_time, int64_t step, const std::vector<Reading>& readings);

/// Seconds since 1970.
using WallClock = std::function<double()>;
double wall_time();

/// Writes a new file of events, which TensorBoard reads behind the older ones of its folder.
/// Invariant: file names ascend from session to session, also when the clock went back.
class TensorBoardReporter : public Reporter {
  public:
    /// What older files say of steps after `last_step` no longer counts; -1: of all steps.
    /// Throws: Error{Output} when folder or file cannot be made.
    TensorBoardReporter(const std::filesystem::path& folder, int64_t last_step, Logger logger,
                        WallClock clock = wall_time);
    void step(const StepEvent& event) override { add(event.step, readings(event)); }
    void evaluation(const EvalEvent& event) override { add(event.step, readings(event)); }
    void saved(const SaveEvent& event) override { add(event.step, readings(event)); }
    void memory(const MemoryEvent& event) override { add(event.step, readings(event)); }
    const std::filesystem::path& path() const { return file_->path(); }

  private:
    void add(int64_t step, const std::vector<Reading>& readings);
    void append(const std::string& message);

    WallClock clock_;
    std::unique_ptr<AppendFile> file_;
};

}  // namespace vpp
