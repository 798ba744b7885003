#include "report/run_record.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/run_files.hpp"
#include "base/units.hpp"
#include "report/json_lines.hpp"

namespace vpp {

namespace fs = std::filesystem;

namespace {

using Json = nlohmann::json;

constexpr uint64_t kLongestPlan = uint64_t{1} << 21;
constexpr uint64_t kLongestTimeline = uint64_t{1} << 27;
constexpr int kMostRanks = 1 << 20;  // and stages, and microbatches

/// Of a number, or of the texts that stand for those that JSON does not have.
std::optional<double> number_of(const Json& line, const char* key) {
    const auto found = line.find(key);
    if (found == line.end()) return std::nullopt;
    if (found->is_number()) return found->get<double>();
    if (!found->is_string()) return std::nullopt;
    const auto& text = found->get_ref<const std::string&>();
    if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
    if (text == "inf") return std::numeric_limits<double>::infinity();
    if (text == "-inf") return -std::numeric_limits<double>::infinity();
    return std::nullopt;
}

double number_or(const Json& line, const char* key, double otherwise) {
    return number_of(line, key).value_or(otherwise);
}

/// A count or a size; what is no finite number in range is 0.
int64_t whole_of(const Json& line, const char* key) {
    const double value = number_or(line, key, 0);
    return std::abs(value) < 9e18 ? static_cast<int64_t>(value) : 0;
}

/// A rank, a stage or a microbatch; -1 for what is none.
int index_of(const Json& line, const char* key) {
    const double value = number_or(line, key, -1);
    return value >= 0 && value < kMostRanks ? static_cast<int>(value) : -1;
}

bool flag_of(const Json& line, const char* key) {
    const auto found = line.find(key);
    return found != line.end() && found->is_boolean() && found->get<bool>();
}

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

StepEvent step_event_of(const Json& line) {
    StepEvent event;
    event.step = whole_of(line, "step");
    event.total_steps = whole_of(line, "total_steps");
    event.loss = number_or(line, "loss", kNone);
    event.grad_norm = number_or(line, "grad_norm", kNone);
    event.clipped = flag_of(line, "clipped");
    event.skipped = flag_of(line, "skipped");
    event.loss_scale = number_of(line, "loss_scale");
    event.lr = number_or(line, "lr", kNone);
    event.samples_per_second = number_or(line, "samples_per_second", 0);
    event.tokens_per_second = number_or(line, "tokens_per_second", 0);
    event.step_ms = number_or(line, "step_ms", 0);
    event.reduce_ms = number_or(line, "reduce_ms", 0);
    event.flops = number_or(line, "flops_per_second", 0) * event.step_ms / 1e3;
    event.bubble_mean = number_of(line, "bubble_mean");
    event.bubble_worst = number_of(line, "bubble_worst");
    event.worst_rank = index_of(line, "worst_rank");
    event.bubble_idle = number_of(line, "bubble_idle");
    event.bubble_predicted = number_of(line, "bubble_predicted");
    event.memory_bytes = whole_of(line, "memory_bytes");
    event.activation_bytes = whole_of(line, "activation_bytes");
    event.eta_seconds = number_or(line, "eta_seconds", -1);
    return event;
}

/// What a step tells of its stages; nothing where one of them has no rank.
std::vector<StageMean> stages_of(const Json& line) {
    std::vector<StageMean> stages;
    const auto list = line.find("stages");
    if (list == line.end() || !list->is_array()) return {};
    for (const Json& from : *list) {
        const int rank = from.is_object() ? index_of(from, "rank") : -1;
        if (rank < 0) return {};
        stages.push_back({rank, number_or(from, "forward_ms", 0), number_or(from, "backward_ms", 0),
                          number_or(from, "transfer_ms", 0), number_or(from, "wait_ms", 0)});
    }
    return stages;
}

/// The means of the newest layout. The first two steps of a start are slower than any later one and count only where
/// the layout has no others. A start of a layout that was there before shows by its memory, which it measures behind
/// them.
class StageSums {
  public:
    void add(int64_t step, int64_t total_steps, const std::vector<StageMean>& stages) {
        if (stages.empty()) return;
        if (!has_layout_of(stages)) {
            start_ = step - 1;
            sums_.clear();
            for (const StageMean& stage : stages) sums_.push_back({.rank = stage.rank});
            num_steps_ = 0;
            newest_.clear();
        }
        if (step <= start_ + kSlowSteps && total_steps > start_ + kSlowSteps) return;
        newest_.push_back(stages);
        is_last_ = step >= total_steps;
        if (newest_.size() > kSlowSteps) count_oldest();
    }

    /// The newest steps were the first of a start.
    void take_memory() {
        if (num_steps_ > 0 || !is_last_) newest_.clear();
    }

    /// Empty when no step counts.
    std::vector<StageMean> means() {
        while (!newest_.empty()) count_oldest();
        std::vector<StageMean> means;
        const auto num_steps = static_cast<double>(num_steps_);
        for (const StageMean& sum : sums_) {
            if (num_steps_ == 0) break;
            means.push_back({sum.rank, sum.forward_ms / num_steps, sum.backward_ms / num_steps,
                             sum.transfer_ms / num_steps, sum.wait_ms / num_steps});
        }
        return means;
    }

  private:
    bool has_layout_of(const std::vector<StageMean>& stages) const {
        return std::ranges::equal(sums_, stages, {}, &StageMean::rank, &StageMean::rank);
    }

    void count_oldest() {
        ++num_steps_;
        const std::vector<StageMean>& stages = newest_.front();
        for (size_t i = 0; i < stages.size(); ++i) {
            sums_[i].forward_ms += stages[i].forward_ms;
            sums_[i].backward_ms += stages[i].backward_ms;
            sums_[i].transfer_ms += stages[i].transfer_ms;
            sums_[i].wait_ms += stages[i].wait_ms;
        }
        newest_.pop_front();
    }

    static constexpr int64_t kSlowSteps = 2;

    std::vector<StageMean> sums_;
    std::deque<std::vector<StageMean>> newest_;  ///< steps of the layout that are not in the sums yet
    int64_t start_ = 0;                          ///< updates that were done before the first step of the layout
    int64_t num_steps_ = 0;                      ///< in the sums
    bool is_last_ = false;                       ///< of the newest step: the training ends with it
};

MemoryEvent memory_of(const Json& line) {
    MemoryEvent event;
    event.step = whole_of(line, "step");
    const auto ranks = line.find("ranks");
    if (ranks == line.end() || !ranks->is_array()) return event;
    for (const Json& rank : *ranks) {
        if (!rank.is_object()) continue;
        event.ranks.push_back({whole_of(rank, "state_bytes"), whole_of(rank, "activation_bytes"),
                               whole_of(rank, "least_simulated_bytes"), whole_of(rank, "most_simulated_bytes")});
    }
    return event;
}

/// Whether the line told an event.
bool take_line(RecordedRun& run, std::string_view text, StageSums& stages) {
    if (text.size() > kLongestLine) return false;
    const Json line = Json::parse(text, nullptr, false);
    if (!line.is_object() || !line.contains("step") || !line["step"].is_number_unsigned()) return false;
    if (!line.contains("event") || !line["event"].is_string()) return false;
    const std::string event = line["event"].get<std::string>();
    if (event == "step") {
        // A run that goes on from an earlier step cuts the lines off that came behind it.
        if (!run.steps.empty() && whole_of(line, "step") <= run.steps.back().step) return false;
        run.steps.push_back(step_event_of(line));
        stages.add(run.steps.back().step, run.steps.back().total_steps, stages_of(line));
    }
    if (event == "eval") {
        run.evaluations.push_back({whole_of(line, "step"), number_or(line, "loss", kNone), whole_of(line, "samples"),
                                   number_or(line, "seconds", 0), number_of(line, "accuracy"),
                                   number_of(line, "perplexity")});
    }
    if (event == "save") {
        run.saves.push_back({whole_of(line, "step"), "", whole_of(line, "size_bytes"), number_or(line, "seconds", 0),
                             number_or(line, "pause_seconds", 0)});
    }
    if (event == "memory") {
        run.memory = memory_of(line);
        stages.take_memory();
    }
    return true;
}

/// Of a line that is too long only the beginning is kept, which is too long as well.
void for_each_line(const InputFile& file, const std::function<void(std::string_view line)>& take) {
    constexpr uint64_t kPiece = uint64_t{1} << 20;
    std::string line;
    Bytes piece;
    for (uint64_t at = 0; at < file.size_bytes(); at += piece.size()) {
        piece.resize(static_cast<size_t>(std::min(kPiece, file.size_bytes() - at)));
        file.read(at, piece);
        std::string_view rest{reinterpret_cast<const char*>(piece.data()), piece.size()};
        while (!rest.empty()) {
            const size_t end = std::min(rest.find('\n'), rest.size() - 1);
            const bool is_whole = rest[end] == '\n';
            if (line.size() <= kLongestLine) line += rest.substr(0, end + 1);
            rest.remove_prefix(end + 1);
            if (!is_whole) continue;
            take(line);
            line.clear();
        }
    }
    if (!line.empty()) take(line);
}

void take_metrics(RecordedRun& run, const fs::path& path) {
    int64_t num_damaged = 0;
    StageSums stages;
    const InputFile file(path);
    try {
        for_each_line(file, [&](std::string_view line) {
            if (!take_line(run, line, stages)) ++num_damaged;
        });
    } catch (const Error& error) {  // a run that begins anew there cuts it off
        run.notes.push_back(error.what());
    }
    run.stages = stages.means();
    if (num_damaged > 0) {
        run.notes.push_back("metrics.jsonl has " +
                            counted_text(num_damaged, "line that is no event", "lines that are no events"));
    }
}

/// The text of a file that may be missing; one that cannot be read is a note.
std::string text_if_there(RecordedRun& run, const fs::path& path, uint64_t limit_bytes) {
    std::error_code ignored;
    if (!fs::exists(path, ignored)) return "";
    try {
        return read_text_file(path, limit_bytes);
    } catch (const Error& error) {
        run.notes.push_back(error.what());
        return "";
    }
}

void take_end(RecordedRun& run, const fs::path& folder) {
    try {
        run.end = read_run_end(folder);
    } catch (const Error& error) {
        run.notes.push_back(error.what());
    }
}

void take_plan(RecordedRun& run, std::string text) {
    run.plan_text = std::move(text);
    try {
        run.settings = settings_from_plan(run.plan_text);
    } catch (const Error& error) {
        run.notes.push_back(error.what());
    }
}

}  // namespace

std::vector<TimedAction> timeline_from_json(const std::string& text) {
    const Json json = Json::parse(text, nullptr, false);
    if (!json.is_object() || !json.contains("actions") || !json["actions"].is_array()) {
        throw Error(ErrorKind::BadData, "timeline.json is no object with a list of actions");
    }
    std::vector<TimedAction> timeline;
    for (const Json& entry : json["actions"]) {
        TimedAction action;
        const bool is_action = entry.is_object() && entry.contains("kind") && entry["kind"].is_string();
        const bool by_card = is_action && entry.contains("card_end_ms");
        const double start = is_action ? number_or(entry, by_card ? "card_begin_ms" : "begin_ms", -1) : -1;
        const double end = is_action ? number_or(entry, by_card ? "card_end_ms" : "end_ms", -1) : -1;
        const double rank = is_action ? number_or(entry, "rank", -1) : -1;
        if (!(start >= 0 && end >= start && std::isfinite(end) && rank >= 0 && rank < kMostRanks)) {
            throw Error(ErrorKind::BadData,
                        "entry " + std::to_string(timeline.size()) +
                            " of timeline.json is no action with a rank, a kind, begin_ms and end_ms");
        }
        timeline.push_back({static_cast<int>(rank), entry["kind"].get<std::string>(), index_of(entry, "stage"),
                            index_of(entry, "microbatch"), start / 1e3, end / 1e3});
    }
    return timeline;
}

RecordedRun read_run(const fs::path& folder) {
    RecordedRun run;
    run.name = folder.string();
    const fs::path metrics = folder / run_files::kMetrics;
    std::error_code ignored;
    if (!fs::exists(metrics, ignored)) {
        throw Error(ErrorKind::MissingInput, "no metrics.jsonl in " + printable(folder.string()) +
                                                 "; name a folder that vpp train wrote, as in runs/gpt");
    }
    take_metrics(run, metrics);
    take_end(run, folder);
    take_plan(run, text_if_there(run, folder / run_files::kPlan, kLongestPlan));
    const std::string timeline =
        text_if_there(run, folder / run_files::kProfile / run_files::kTimeline, kLongestTimeline);
    if (timeline.empty()) return run;
    try {
        run.timeline = timeline_from_json(timeline);
    } catch (const Error& error) {
        run.notes.push_back(error.what());
    }
    return run;
}

}  // namespace vpp
