#include "compare/run_curves.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "report/metrics.hpp"

namespace vpp {

namespace {

template <class Event>
void add_names(std::vector<std::string>& names) {
    for (const Reading& reading : readings(Event{})) names.emplace_back(reading.name.tag);
}

/// The place of a number in the readings of an event; as many as there are when it is none of them.
template <class Event>
size_t place_of(const std::string& name) {
    std::vector<std::string> names;
    add_names<Event>(names);
    return static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

template <class Event>
void add_points(Curve& curve, const std::vector<Event>& events, const std::string& name) {
    const size_t place = place_of<Event>(name);
    if (place == readings(Event{}).size()) return;
    for (const Event& event : events) {
        if (const auto value = readings(event)[place].value) curve.add(static_cast<double>(event.step), *value);
    }
}

Quantity quantity_of(const std::string& name) {
    const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
    if (has("_bytes")) return Quantity::Bytes;
    if (has("bubble")) return Quantity::Share;
    return has("_per_s") || has("samples") ? Quantity::Count : Quantity::Plain;
}

}  // namespace

std::vector<std::string> curve_names() {
    std::vector<std::string> names;
    add_names<StepEvent>(names);
    add_names<EvalEvent>(names);
    return names;
}

Curve run_curve(const RecordedRun& run, const std::string& name) {
    const std::vector<std::string> names = curve_names();
    check(std::find(names.begin(), names.end(), name) != names.end(), "a curve has a name of the table");
    Curve curve;
    add_points(curve, run.steps, name);
    add_points(curve, run.evaluations, name);
    return curve;
}

Plot plot_runs(const Comparison& comparison, const std::string& name) {
    Plot plot{name, "", quantity_of(name), {}};
    for (const ComparedRun& run : comparison.runs) {
        Curve curve = run_curve(run.record, name);
        const size_t window = smoothing_window(curve.size());
        if (window > 1) plot.note = "long curves are means over a fiftieth of their steps";
        plot.curves.push_back({run.mark, run.record.name, moving_mean(curve, window)});
    }
    return plot;
}

std::vector<std::string> hole_notes(const Comparison& comparison, const std::string& name) {
    std::vector<std::string> notes;
    for (const ComparedRun& run : comparison.runs) {
        const Curve curve = run_curve(run.record, name);
        const auto is_hole = [](double value) { return !std::isfinite(value); };
        const auto first = std::find_if(curve.y.begin(), curve.y.end(), is_hole);
        if (first == curve.y.end()) continue;
        const auto count = std::count_if(curve.y.begin(), curve.y.end(), is_hole);
        const auto step = static_cast<int64_t>(curve.x[static_cast<size_t>(first - curve.y.begin())]);
        notes.push_back(run.mark + ": " + std::to_string(count) +
                        (count == 1 ? " value is not finite, at step " : " values are not finite, the first at step ") +
                        std::to_string(step));
    }
    return notes;
}

}  // namespace vpp
