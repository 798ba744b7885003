#include "report/csv_lines.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <map>
#include <string_view>
#include <utility>

namespace vpp {

namespace fs = std::filesystem;

namespace {

/// The shortest text that reads back to the same bits.
std::string number_text(double value) {
    if (std::isnan(value)) return "nan";
    char text[32];
    const auto end = std::to_chars(text, text + sizeof text, value).ptr;
    return {text, end};
}

/// Columns behind step and event.
const std::map<std::string_view, size_t>& columns() {
    static const std::map<std::string_view, size_t> places = [] {
        std::map<std::string_view, size_t> found;
        for (const MetricName& name : metric_names()) found.emplace(name.tag, found.size());
        return found;
    }();
    return places;
}

/// The step of a line that has all its cells; the header is of step 0: a file that keeps none is begun anew.
std::optional<uint64_t> step_of_csv(std::string_view line) {
    if (line == csv_header()) return 0;
    const auto num_cells = static_cast<size_t>(std::count(line.begin(), line.end(), ',')) + 1;
    if (num_cells != columns().size() + 2) return std::nullopt;
    uint64_t step = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.find(','), step);
    if (error != std::errc() || *end != ',') return std::nullopt;
    return step;
}

bool has_other_columns(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::string first;
    return std::getline(file, first) && !file.eof() && first != csv_header();
}

/// Renames the file to the first name that is free.
void set_aside(const fs::path& path, const Logger& logger) {
    fs::path place;
    for (int number = 1; place.empty() || fs::exists(fs::symlink_status(place)); ++number) {
        place = path.string() + "." + std::to_string(number);
    }
    fs::rename(path, place);
    logger->warn(path.string() + " has other columns than this version writes; it is now " + place.string());
}

}  // namespace

std::string csv_header() {
    std::string header = "step,event";
    for (const MetricName& name : metric_names()) header += std::string(",") + name.tag;
    return header;
}

CsvReporter::CsvReporter(fs::path path, Logger logger) : file_(path, std::move(logger)) {
    std::error_code ignored;
    if (fs::file_size(path, ignored) == 0) file_.append(csv_header());
}

void CsvReporter::add(int64_t step, const char* event, const std::vector<Reading>& readings) {
    std::vector<std::string> cells(columns().size());
    for (const Reading& reading : readings) {
        if (reading.value) cells[columns().at(reading.name.tag)] = number_text(*reading.value);
    }
    std::string line = std::to_string(step) + ',' + event;
    for (const std::string& cell : cells) line += ',' + cell;
    file_.append(line);
}

CutResult cut_csv_after(const fs::path& path, int64_t step, const Logger& logger) {
    std::error_code ignored;
    if (fs::is_regular_file(fs::symlink_status(path, ignored)) && has_other_columns(path)) {
        set_aside(path, logger);
        return {};
    }
    return cut_lines_after(path, step, step_of_csv, logger);
}

}  // namespace vpp
