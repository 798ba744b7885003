#include "report/sinks.hpp"

#include <exception>
#include <system_error>

#include "base/run_files.hpp"
#include "report/csv_lines.hpp"
#include "report/json_lines.hpp"
#include "report/prometheus.hpp"
#include "report/tensorboard.hpp"

namespace vpp {

namespace fs = std::filesystem;

namespace {

/// -1: none. A first evaluation, of step 0, is of the run that began then.
int64_t last_kept_step(const SinkRequest& request) {
    return request.last_own_step > 0 ? request.last_own_step : -1;
}

std::unique_ptr<Reporter> open_json_lines(const SinkRequest& request, const fs::path& path) {
    cut_after(path, last_kept_step(request), request.logger);
    return std::make_unique<JsonLinesReporter>(path, request.logger);
}

std::unique_ptr<Reporter> open_csv(const SinkRequest& request, const fs::path& path) {
    cut_csv_after(path, last_kept_step(request), request.logger);
    return std::make_unique<CsvReporter>(path, request.logger);
}

std::unique_ptr<Reporter> open_tensorboard(const SinkRequest& request, const fs::path& path) {
    return std::make_unique<TensorBoardReporter>(path, last_kept_step(request), request.logger);
}

std::unique_ptr<Reporter> open_prometheus(const SinkRequest& request, const fs::path& path) {
    return std::make_unique<PrometheusReporter>(path, request.folder.string(), request.logger);
}

}  // namespace

const std::vector<Sink>& sinks() {
    static const std::vector<Sink> rows{
        {run_files::kMetrics, "JSON lines: programs, and vpp report", open_json_lines},
        {"metrics.csv", "a table: spreadsheets, pandas", open_csv},
        {"tensorboard", "event files: tensorboard --logdir", open_tensorboard},
        {"metrics.prom", "the newest numbers: the node exporter of Prometheus", open_prometheus},
    };
    return rows;
}

uint64_t size_of_sinks(const fs::path& folder) {
    uint64_t sum = 0;
    for (const Sink& sink : sinks()) {
        std::error_code error;  // a folder is none that is cut
        const uint64_t size = fs::file_size(folder / sink.file, error);
        if (!error) sum += size;
    }
    return sum;
}

void add_sinks(Reporters& reporters, const SinkRequest& request) {
    for (const Sink& sink : sinks()) {
        try {
            reporters.add(sink.open(request, request.folder / sink.file));
        } catch (const std::exception& error) {
            request.logger->warn(std::string("nothing is written to ") + sink.file + ": " + error.what() +
                                 "; training goes on without it");
        }
    }
}

}  // namespace vpp
