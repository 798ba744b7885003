#include "report/json_lines.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/file.hpp"

namespace vpp {

namespace fs = std::filesystem;

namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kLongestLine = size_t{1} << 24;  // bytes; an event of 100,000 microbatches has 2 MB

Json number(double value) {
    if (std::isfinite(value)) return value;
    if (std::isnan(value)) return "nan";
    return value > 0 ? "inf" : "-inf";
}

/// Null for what is not known.
Json number_if(bool is_known, double value) {
    return is_known ? number(value) : Json(nullptr);
}

Json number_if(const std::optional<double>& value) {
    return number_if(value.has_value(), value.value_or(0));
}

Json stages_json(const std::vector<StageTimesEvent>& stages) {
    Json values = Json::array();
    for (const StageTimesEvent& stage : stages) {
        values.push_back({{"rank", stage.rank},
                          {"forward_ms", number(stage.forward_ms)},
                          {"backward_ms", number(stage.backward_ms)},
                          {"transfer_ms", number(stage.transfer_ms)},
                          {"wait_ms", number(stage.wait_ms)}});
    }
    return values;
}

/// A folder's name may be no UTF-8; such bytes are replaced rather than thrown at.
std::string text_of(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// The step of a line, or nothing for a line that no reporter wrote whole.
std::optional<uint64_t> step_of(std::string_view line) {
    if (line.size() > kLongestLine) return std::nullopt;
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object()) return std::nullopt;
    const auto step = json.find("step");
    if (step == json.end() || !step->is_number_unsigned()) return std::nullopt;
    return step->get<uint64_t>();
}

struct Cut {
    CutResult result;
    std::vector<std::string_view> kept;  ///< runs of whole lines, with their ends
};

Cut find_cut(std::string_view text, uint64_t last_step) {
    Cut cut;
    while (!text.empty()) {
        const size_t end = text.find('\n');
        if (end == std::string_view::npos) {
            ++cut.result.num_damaged;
            break;
        }
        const std::optional<uint64_t> step = step_of(text.substr(0, end));
        const std::string_view line = text.substr(0, end + 1);
        text.remove_prefix(end + 1);
        if (!step) {
            ++cut.result.num_damaged;
        } else if (*step > last_step) {
            ++cut.result.num_later;
        } else {
            ++cut.result.num_kept;
            const bool follows = !cut.kept.empty() && cut.kept.back().data() + cut.kept.back().size() == line.data();
            if (follows) {
                cut.kept.back() = {cut.kept.back().data(), cut.kept.back().size() + line.size()};
            } else {
                cut.kept.push_back(line);
            }
        }
    }
    return cut;
}

void replace_file(const fs::path& path, const std::vector<std::string_view>& parts) {
    const fs::path temporary = path.string() + ".tmp";
    try {
        OutputFile file(temporary);
        for (const std::string_view part : parts) file.write_text(part);
        file.finish();
        if (::rename(temporary.c_str(), path.c_str()) != 0) {
            throw Error(ErrorKind::Io, "cannot rename to " + path.string() + ": " + std::strerror(errno));
        }
    } catch (...) {
        std::error_code ignored;
        fs::remove(temporary, ignored);
        throw;
    }
    sync_folder(path.has_parent_path() ? path.parent_path() : fs::path("."));
}

/// Whether the file's last byte ends a line; an empty file does too.
bool ends_a_line(int fd, off_t size) {
    char last = '\n';
    return size == 0 || (::pread(fd, &last, 1, size - 1) == 1 && last == '\n');
}

}  // namespace

std::string to_json_line(const StepEvent& event) {
    Json losses = Json::array();
    for (const double loss : event.microbatch_losses) losses.push_back(number(loss));
    return text_of({{"event", "step"},
                    {"step", event.step},
                    {"total_steps", event.total_steps},
                    {"loss", number(event.loss)},
                    {"microbatch_losses", std::move(losses)},
                    {"grad_norm", number(event.grad_norm)},
                    {"clipped", event.clipped},
                    {"skipped", event.skipped},
                    {"loss_scale", number_if(event.loss_scale.has_value(), event.loss_scale.value_or(0))},
                    {"lr", number(event.lr)},
                    {"samples_per_second", number(event.samples_per_second)},
                    {"tokens_per_second", number_if(event.tokens_per_second > 0, event.tokens_per_second)},
                    {"step_ms", number(event.step_ms)},
                    {"reduce_ms", number(event.reduce_ms)},
                    {"bubble_mean", number_if(event.bubble_mean.has_value(), event.bubble_mean.value_or(0))},
                    {"bubble_worst", number_if(event.bubble_worst.has_value(), event.bubble_worst.value_or(0))},
                    {"worst_rank", event.bubble_worst ? Json(event.worst_rank) : Json(nullptr)},
                    {"stages", stages_json(event.stages)},
                    {"bubble_idle", number_if(event.bubble_idle)},
                    {"bubble_predicted", number_if(event.bubble_predicted)},
                    {"memory_bytes", event.memory_bytes},
                    {"activation_bytes", event.activation_bytes},
                    {"eta_seconds", number_if(event.eta_seconds >= 0, event.eta_seconds)}});
}

std::string to_json_line(const EvalEvent& event) {
    return text_of({{"event", "eval"},
                    {"step", event.step},
                    {"loss", number(event.loss)},
                    {"samples", event.samples},
                    {"seconds", number(event.seconds)}});
}

std::string to_json_line(const SaveEvent& event) {
    return text_of({{"event", "save"},
                    {"step", event.step},
                    {"folder", event.folder},
                    {"size_bytes", event.size_bytes},
                    {"seconds", number(event.seconds)},
                    {"pause_seconds", number(event.pause_seconds)}});
}

std::string to_json_line(const MemoryEvent& event) {
    Json ranks = Json::array();
    for (const MemoryEvent::Rank& rank : event.ranks) {
        ranks.push_back({{"state_bytes", rank.state_bytes},
                         {"activation_bytes", rank.activation_bytes},
                         {"least_simulated_bytes", rank.least_simulated_bytes},
                         {"most_simulated_bytes", rank.most_simulated_bytes}});
    }
    return text_of({{"event", "memory"}, {"step", event.step}, {"ranks", std::move(ranks)}});
}

std::string to_json_line(const PipelineEvent& event) {
    return text_of({{"event", "pipeline"},
                    {"step", event.step},
                    {"first_step", event.first_step},
                    {"schedule", event.schedule},
                    {"num_ranks", event.num_ranks},
                    {"num_microbatches", event.num_microbatches},
                    {"stages", stages_json(event.stages)},
                    {"actions_ms", number(event.actions_ms)},
                    {"predicted_ms", number(event.predicted_ms)},
                    {"bubble_idle", number_if(event.bubble_idle)},
                    {"bubble_predicted", number_if(event.bubble_predicted)}});
}

JsonLinesReporter::JsonLinesReporter(fs::path path, Logger logger)
    : path_(std::move(path)), logger_(std::move(logger)) {
    // O_NONBLOCK: a named pipe would hold the open until somebody reads; files do not care.
    fd_ = ::open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
    if (fd_ < 0) throw Error(ErrorKind::Output, "cannot open " + path_.string() + ": " + std::strerror(errno));
    struct stat info {};
    if (::fstat(fd_, &info) != 0 || !S_ISREG(info.st_mode)) {
        ::close(fd_);
        throw Error(ErrorKind::Output, path_.string() + " is not a regular file; move it away");
    }
    is_torn_ = !ends_a_line(fd_, info.st_size);
}

JsonLinesReporter::~JsonLinesReporter() {
    ::close(fd_);
}

void JsonLinesReporter::append(std::string line) {
    line += '\n';
    if (is_torn_) line.insert(line.begin(), '\n');
    struct stat before {};
    const bool is_sized = ::fstat(fd_, &before) == 0;
    ssize_t written = -1;
    do {
        written = ::write(fd_, line.data(), line.size());
    } while (written < 0 && errno == EINTR);
    if (written == static_cast<ssize_t>(line.size())) {
        is_torn_ = false;
        return;
    }
    // A write of a part tells no reason; it is a full disk or a size limit.
    const std::string reason = written < 0 ? std::strerror(errno) : "no room for the whole line";
    if (written > 0) is_torn_ = !(is_sized && ::ftruncate(fd_, before.st_size) == 0) || is_torn_;
    if (num_lost_++ > 0) return;
    logger_->warn("cannot write to " + path_.string() + ": " + reason +
                  "; training goes on, and its lines are missing there until there is room");
}

CutResult cut_after(const fs::path& path, int64_t step, const Logger& logger) {
    check(step >= 0, "a cut is after a step");
    std::error_code ignored;
    if (!fs::exists(fs::symlink_status(path, ignored))) return {};
    const MappedFile file(path);
    const auto* data = reinterpret_cast<const char*>(file.bytes().data());
    const Cut cut = find_cut({data, file.bytes().size()}, static_cast<uint64_t>(step));
    if (cut.result.num_damaged > 0) {
        logger->warn(path.string() + ": " + std::to_string(cut.result.num_damaged) + " damaged line(s) dropped");
    }
    if (cut.result.num_later + cut.result.num_damaged > 0) replace_file(path, cut.kept);
    return cut.result;
}

}  // namespace vpp
