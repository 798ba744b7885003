#pragma once
// The newest numbers of the run for a monitor: <run>/metrics.prom, in the text format that the textfile collector of
// Prometheus' node exporter reads. Nothing is served and no port is opened.
//
//   # HELP vpp_train_loss loss of the global batch
//   # TYPE vpp_train_loss gauge
//   vpp_train_loss{run="runs/gpt"} 3.14
//
// Source: "Text-based format", Prometheus documentation, version 0.0.4; the collector takes no time stamps.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "report/event.hpp"
#include "report/metrics.hpp"
#include "report/tensorboard.hpp"

namespace vpp {

/// A name, its meaning and its value, as lines.
struct Gauge {
    std::string name, meaning;
    double value = 0;
};
/// The text of the file; `run` is the label of all.
std::string prometheus_text(const std::string& run, const std::vector<Gauge>& gauges);

/// Publishes the file by a rename, so that a reader never sees a part of one: after the first event, at most once a
/// second, and with the last state at the end.
class PrometheusReporter : public Reporter {
  public:
    PrometheusReporter(std::filesystem::path path, std::string run, Logger logger, WallClock clock = wall_time);
    ~PrometheusReporter() override;
    PrometheusReporter(const PrometheusReporter&) = delete;
    PrometheusReporter& operator=(const PrometheusReporter&) = delete;

    void step(const StepEvent& event) override;
    void evaluation(const EvalEvent& event) override { take(readings(event)); }
    void saved(const SaveEvent& event) override { take(readings(event)); }
    void memory(const MemoryEvent& event) override { take(readings(event)); }
    int64_t num_lost() const { return num_lost_; }

  private:
    void put(const char* name, const char* meaning, double value);
    void take(const std::vector<Reading>& readings);
    void publish();

    std::filesystem::path path_;
    std::string run_;
    Logger logger_;
    WallClock clock_;
    std::map<std::string, Gauge> gauges_;  ///< by name
    double published_ = 0;                 ///< when
    bool is_behind_ = false;               ///< the file lacks the newest numbers
    int64_t num_lost_ = 0;
};

}  // namespace vpp
