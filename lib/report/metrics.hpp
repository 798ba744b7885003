#pragma once
// The numbers of a run that charts and monitors know by name, from one table: the columns of metrics.csv, the tags of
// TensorBoard, the gauges of the Prometheus file. A new number is a row in metrics.cpp;
// its field is written by json_lines and read back by run_record, else comparisons lack it.
#include <optional>
#include <string>
#include <vector>

#include "report/event.hpp"

namespace vpp {

/// The names of a number.
struct MetricName {
    const char* tag;      ///< "train/loss": TensorBoard and CSV
    const char* gauge;    ///< "vpp_train_loss": Prometheus, in seconds and bytes
    const char* meaning;  ///< one phrase
};

/// A number of an event.
struct Reading {
    MetricName name;
    std::optional<double> value;  ///< empty = not known
};

/// The numbers of an event, always the same ones in the same order.
std::vector<Reading> readings(const StepEvent& event);
std::vector<Reading> readings(const EvalEvent& event);
std::vector<Reading> readings(const SaveEvent& event);
std::vector<Reading> readings(const MemoryEvent& event);

/// All names, by event in that order.
const std::vector<MetricName>& metric_names();

}  // namespace vpp
