#include "launch/progress.hpp"

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/run_files.hpp"
#include "checkpoint/folder_names.hpp"

namespace vpp {

namespace fs = std::filesystem;

namespace {

// Longer than any event line: the losses of 100,000 microbatches take some 2 MB.
constexpr uint64_t kTail = uint64_t{4} << 20;

std::optional<int64_t> step_of(const std::string& line) {
    const auto event = nlohmann::json::parse(line, nullptr, false);
    if (!event.is_object() || event.value("event", nlohmann::json()) != "step") return std::nullopt;
    const auto step = event.find("step");
    return step != event.end() && step->is_number_integer() ? std::optional<int64_t>(step->get<int64_t>())
                                                            : std::nullopt;
}

/// The step of the last whole line that tells one.
std::optional<int64_t> last_step(const std::string& text) {
    for (size_t end = text.rfind('\n'); end != std::string::npos && end > 0;) {
        const size_t before = text.rfind('\n', end - 1);
        const size_t begin = before == std::string::npos ? 0 : before + 1;
        if (const auto step = step_of(text.substr(begin, end - begin))) return step;
        end = before;
    }
    return std::nullopt;
}

std::string tail_of(const fs::path& path, uint64_t size) {
    std::string text(static_cast<size_t>(std::min(size, kTail)), '\0');
    std::ifstream file(path, std::ios::binary);
    file.seekg(static_cast<std::streamoff>(size - text.size()));
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<size_t>(std::max<std::streamsize>(0, file.gcount())));
    return text;
}

}  // namespace

RunProgress look_at_progress(const fs::path& run) {
    RunProgress progress;
    std::error_code error;
    const fs::path metrics = run / run_files::kMetrics;
    const auto size = fs::is_regular_file(metrics, error) ? fs::file_size(metrics, error) : 0;
    if (!error && size > 0) {
        progress.metrics_bytes = size;
        progress.step = last_step(tail_of(metrics, size));
    }
    for (const auto& entry : fs::directory_iterator(run / run_files::kCheckpoints, error)) {
        const auto folder = parse_step_folder(entry.path().filename().string());
        if (folder) progress.checkpoint = std::max(progress.checkpoint.value_or(-1), folder->step);
    }
    return progress;
}

}  // namespace vpp
