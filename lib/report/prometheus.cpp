#include "report/prometheus.hpp"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <system_error>
#include <utility>

#include "base/utf8.hpp"

namespace vpp {

namespace fs = std::filesystem;

namespace {

constexpr double kSecondsBetween = 1;

std::string sample_text(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
    char text[32];
    const auto end = std::to_chars(text, text + sizeof text, value).ptr;
    return {text, end};
}

/// For a label's value, or without quotes for a meaning.
std::string label_text(const std::string& text, bool quotes) {
    std::string safe;
    for (const char c : as_utf8(text)) {
        if (c == '\\' || (c == '"' && quotes)) safe += '\\';
        if (c == '\n') {
            safe += "\\n";
        } else {
            safe += c;
        }
    }
    return safe;
}

}  // namespace

std::string prometheus_text(const std::string& run, const std::vector<Gauge>& gauges) {
    std::string text;
    for (const Gauge& gauge : gauges) {
        text += "# HELP " + gauge.name + " " + label_text(gauge.meaning, false) + "\n# TYPE " + gauge.name +
                " gauge\n" + gauge.name + "{run=\"" + label_text(run, true) + "\"} " + sample_text(gauge.value) + "\n";
    }
    return text;
}

PrometheusReporter::PrometheusReporter(fs::path path, std::string run, Logger logger, WallClock clock)
    : path_(std::move(path)), run_(std::move(run)), logger_(std::move(logger)), clock_(std::move(clock)) {}

PrometheusReporter::~PrometheusReporter() {
    if (is_behind_) publish();
}

void PrometheusReporter::put(const char* name, const char* meaning, double value) {
    gauges_[name] = {name, meaning, value};
}

void PrometheusReporter::step(const StepEvent& event) {
    put("vpp_step", "updates that are done", static_cast<double>(event.step));
    put("vpp_total_steps", "updates of the whole training", static_cast<double>(event.total_steps));
    if (event.eta_seconds >= 0) put("vpp_eta_seconds", "until the last step", event.eta_seconds);
    take(readings(event));
}

void PrometheusReporter::take(const std::vector<Reading>& readings) {
    for (const Reading& reading : readings) {
        if (reading.value) {
            put(reading.name.gauge, reading.name.meaning, *reading.value);
        } else {
            gauges_.erase(reading.name.gauge);
        }
    }
    const double now = clock_();
    put("vpp_last_event_time_seconds", "when the last of these numbers came, since 1970", now);
    is_behind_ = true;
    // Also when the clock went back.
    if (std::abs(now - published_) >= kSecondsBetween) publish();
}

void PrometheusReporter::publish() {
    std::vector<Gauge> gauges;
    for (const auto& [name, gauge] : gauges_) gauges.push_back(gauge);
    // A name that the collector does not take for one of its files.
    const fs::path temporary = path_.string() + ".tmp";
    std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
    file << prometheus_text(run_, gauges);
    file.close();
    std::error_code error;
    if (file) fs::rename(temporary, path_, error);
    published_ = clock_();
    is_behind_ = false;
    if (file && !error) return;
    std::error_code ignored;
    fs::remove(temporary, ignored);
    if (num_lost_++ > 0) return;
    logger_->warn("cannot write " + path_.string() + (error ? ": " + error.message() : "") +
                  "; training goes on, and the file is old until it can be written");
}

}  // namespace vpp
