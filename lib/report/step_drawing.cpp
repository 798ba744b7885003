#include "report/step_drawing.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "base/markup.hpp"
#include "base/units.hpp"
#include "schedule/edges.hpp"
#include "schedule/generators.hpp"
#include "schedule/lowering.hpp"
#include "schedule/simulator.hpp"

namespace vpp {

namespace {

// In units of the drawing.
constexpr double kPictureWidth = 1200, kRow = 26, kGap = 4, kPictureLeft = 62, kPictureTop = 4, kPictureBottom = 24,
                 kNarrowestText = 11;
constexpr size_t kMostBoxes = 20'000;
constexpr int kShades = 4;

bool computes(const TimedAction& action) {
    const std::optional<ActionKind> kind = kind_from_word(action.kind);
    return kind && is_computing(*kind);
}

std::vector<TimedAction> simulated(const Schedule& lowered) {
    const Simulation simulation = simulate(lowered);
    std::vector<TimedAction> timeline;
    for (size_t rank = 0; rank < lowered.actions.size(); ++rank) {
        for (size_t i = 0; i < lowered.actions[rank].size(); ++i) {
            const Action& action = lowered.actions[rank][i];
            const ActionTime& time = simulation.times[rank][i];
            if (!is_computing(action.kind)) continue;
            timeline.push_back({static_cast<int>(rank), word_of(action.kind), action.stage, action.microbatch,
                                static_cast<double>(time.start), static_cast<double>(time.end)});
        }
    }
    return timeline;
}

double end_of(const std::vector<TimedAction>& actions) {
    double end = 0;
    for (const TimedAction& action : actions) end = std::max(end, action.end_seconds);
    return end > 0 ? end : 1;
}

class StepDrawing {
  public:
    explicit StepDrawing(const StepPicture& picture) : picture_(picture), end_(end_of(picture.actions)) {
        size_t num_boxes = 0;
        std::map<int, size_t> of_rank;
        for (const TimedAction& action : picture.actions) {
            ++of_rank[action.rank];
            stages_[action.rank].insert(action.stage);
        }
        for (const auto& [rank, count] : of_rank) {
            num_boxes += count;
            if (num_boxes <= kMostBoxes || rows_.empty()) rows_.emplace(rank, rows_.size());
        }
        num_left_out_ = of_rank.size() - rows_.size();
    }

    std::string draw() const {
        const double height = kPictureTop + static_cast<double>(rows_.size()) * (kRow + kGap) + kPictureBottom;
        std::string text = "<svg class=\"step\" viewBox=\"0 0 " + coordinate(kPictureWidth) + " " + coordinate(height) +
                           "\" role=\"img\" aria-label=\"time-line of a step\">\n";
        for (const auto& [rank, row] : rows_) text += row_text(rank, row);
        for (const TimedAction& action : picture_.actions) {
            if (rows_.contains(action.rank)) text += box(action);
        }
        return text + axis(height) + "</svg>\n";
    }

  private:
    double x(double time) const { return kPictureLeft + time / end_ * (kPictureWidth - kPictureLeft - 2); }
    static double y(size_t row) { return kPictureTop + static_cast<double>(row) * (kRow + kGap); }

    static std::string row_text(int rank, size_t row) {
        return "<text class=\"tick\" text-anchor=\"end\" x=\"" + coordinate(kPictureLeft - 8) + "\" y=\"" +
               coordinate(y(row) + kRow / 2 + 4) + "\">rank " + std::to_string(rank) +
               "</text><rect class=\"idle\" x=\"" + coordinate(kPictureLeft) + "\" y=\"" + coordinate(y(row)) +
               "\" width=\"" + coordinate(kPictureWidth - kPictureLeft - 2) + "\" height=\"" + coordinate(kRow) +
               "\"></rect>\n";
    }

    /// The place of a stage among those of its rank tells its shade.
    int shade(const TimedAction& action) const {
        const std::set<int>& stages = stages_.at(action.rank);
        return static_cast<int>(std::distance(stages.begin(), stages.find(action.stage))) % kShades;
    }

    std::string times(const TimedAction& action) const {
        if (!picture_.is_measured) {
            return coordinate(action.start_seconds) + " to " + coordinate(action.end_seconds);
        }
        return fixed_text(1e3 * action.start_seconds, 2) + " to " + fixed_text(1e3 * action.end_seconds, 2) + " ms";
    }

    std::string box(const TimedAction& action) const {
        const double left = x(action.start_seconds), width = x(action.end_seconds) - left;
        if (width <= 0) return "";
        const bool is_work = computes(action);
        const double top = y(rows_.at(action.rank)) + (is_work ? 0 : kRow - 4), height = is_work ? kRow : 4;
        std::string text =
            "<rect class=\"" + (is_work ? action.kind + " k" + std::to_string(shade(action)) : "message") + "\" x=\"" +
            coordinate(left) + "\" y=\"" + coordinate(top) + "\" width=\"" + coordinate(width) + "\" height=\"" +
            coordinate(height) + "\"><title>" + escaped(action.kind) + " of stage " + std::to_string(action.stage) +
            ", microbatch " + std::to_string(action.microbatch) + ": " + times(action) + "</title></rect>";
        if (is_work && width >= kNarrowestText) {
            text += "<text class=\"box\" text-anchor=\"middle\" x=\"" + coordinate(left + width / 2) + "\" y=\"" +
                    coordinate(top + kRow / 2 + 4) + "\">" + std::to_string(action.microbatch) + "</text>";
        }
        return text + "\n";
    }

    std::string axis(double height) const {
        std::string text = picture_.is_measured ? fixed_text(1e3 * end_, 1) + " ms" : "";
        if (num_left_out_ > 0) {
            text += (text.empty() ? "" : "; ") + std::to_string(num_left_out_) + " more ranks are not drawn";
        }
        return "<text class=\"tick\" text-anchor=\"end\" x=\"" + coordinate(kPictureWidth - 2) + "\" y=\"" +
               coordinate(height - 6) + "\">" + escaped(text) + "</text>\n";
    }

    const StepPicture& picture_;
    double end_;
    std::map<int, size_t> rows_;           ///< by rank that is drawn
    std::map<int, std::set<int>> stages_;  ///< by rank
    size_t num_left_out_ = 0;
};

}  // namespace

std::optional<StepPicture> picture_of(const RecordedRun& run, const Settings& settings, std::string& why) {
    if (!run.timeline.empty()) return StepPicture{run.timeline, "measured", true};
    const std::string name = setting(settings, "pipeline.schedule_type").value_or("");
    const ScheduleKind* kind = find_schedule_kind(name);
    const auto ranks = count_setting(settings, "mesh.pp");
    const auto microbatches = count_setting(settings, "pipeline.num_microbatches");
    if (!ranks || !microbatches || name.empty()) {
        why = "The plan of this run cannot be read, so its step is not drawn.";
        return std::nullopt;
    }
    if (!kind) {
        why =
            "A schedule of type " + name + " is made for the model or read from a file, so its step is not drawn here.";
        return std::nullopt;
    }
    try {
        const int chunks = count_setting(settings, "pipeline.virtual_chunks").value_or(1);
        const Schedule compute = make_schedule(name, *ranks, chunks, *microbatches);
        const Schedule lowered = lower(compute, chain_edges(compute.num_stages()));
        std::string caption = "simulated with equally dear stages (F 1, B 2, I 1, W 1)";
        if (kind->uses_costs) caption += "; " + name + " follows the costs of the model, so the run had another order";
        const int runs = count_setting(settings, "train.accumulate").value_or(1);
        if (runs > 1) caption += "; one of the " + std::to_string(runs) + " pipeline runs of a step";
        return StepPicture{simulated(lowered), std::move(caption), false};
    } catch (const Error& error) {
        why = error.what();
        return std::nullopt;
    }
}

std::string draw_step(const StepPicture& picture) {
    return StepDrawing(picture).draw();
}

std::map<int, double> busy_shares(const std::vector<TimedAction>& actions) {
    std::map<int, double> shares;
    const double end = end_of(actions);
    for (const TimedAction& action : actions) {
        double& share = shares[action.rank];
        if (computes(action)) share += (action.end_seconds - action.start_seconds) / end;
    }
    return shares;
}

}  // namespace vpp
