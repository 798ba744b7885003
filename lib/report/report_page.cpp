#include "report/report_page.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>

#include "base/error.hpp"
#include "base/markup.hpp"
#include "base/units.hpp"
#include "report/chart.hpp"
#include "report/page_style.hpp"
#include "report/run_summary.hpp"
#include "report/settings.hpp"
#include "report/step_drawing.hpp"

namespace vpp {

namespace {

using StepNumber = std::function<std::optional<double>(const StepEvent&)>;

std::string element(const std::string& name, const std::string& inside, const std::string& kind = "") {
    return "<" + name + (kind.empty() ? "" : " class=\"" + kind + "\"") + ">" + inside + "</" + name + ">";
}

std::string table_row(const std::string& cell, const std::vector<std::string>& texts, const std::string& kind = "") {
    std::string cells;
    for (size_t i = 0; i < texts.size(); ++i) cells += element(cell, texts[i], i > 0 ? kind : "");
    return element("tr", cells) + "\n";
}

std::string big_card(const std::string& number, const std::string& meaning) {
    return "<div class=\"card\"><b>" + escaped(number) + "</b><span>" + escaped(meaning) + "</span></div>\n";
}

class ReportPage {
  public:
    explicit ReportPage(const std::vector<RecordedRun>& runs) : runs_(runs) {
        for (const RecordedRun& run : runs) summaries_.push_back(summary_of(run));
    }

    std::string write() const {
        const std::string title = "vpp report: " + (runs_.size() == 1 ? runs_[0].name : several());
        return "<!DOCTYPE html>\n"
               "<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
               "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
               "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
               "script-src 'unsafe-inline'\"/>\n" +
               element("title", escaped(title)) + "\n<style>" + kPageStyle + "</style>\n</head>\n<body>\n<main>\n" +
               head() + results() + charts() + steps() + memory() + compared() + plans() + "</main>\n<script>" +
               kPageScript + "</script>\n</body>\n</html>\n";
    }

  private:
    bool is_one() const { return runs_.size() == 1; }
    std::string several() const { return std::to_string(runs_.size()) + " runs"; }
    int colour(size_t run) const { return static_cast<int>(run) % kNumColours; }
    std::string key(size_t run) const {
        return "<span class=\"key c" + std::to_string(colour(run)) + "\"></span>" + escaped(runs_[run].name);
    }

    std::string head() const {
        std::string text = element("h1", is_one() ? escaped(runs_[0].name) : escaped(several() + " side by side"));
        for (const RecordedRun& run : runs_) {
            const std::string name = is_one() ? "" : run.name + ": ";
            if (run.end && run.end->is_failure()) {
                text += element("p", escaped(name + run.end->state() + ": " + run.end->text), "failure") + "\n";
            }
            for (const std::string& note : run.notes) text += element("p", escaped(name + note)) + "\n";
        }
        return text;
    }

    std::string results() const {
        if (!is_one()) return results_table();
        const RunSummary& run = summaries_[0];
        std::string cards;
        for (const SummaryFigure& figure : summary_figures(run)) {
            if (!figure.value.empty()) cards += big_card(figure.value, figure.name + figure.remark);
        }
        return element("div", "\n" + cards, "cards") + "\n";
    }

    std::string results_table() const {
        std::vector<std::string> header{"run"};
        const auto figures = figures_of_runs(summaries_);
        for (const SummaryFigure& figure : figures[0]) header.push_back(escaped(figure.name));
        std::string rows = table_row("th", header, "number");
        for (size_t i = 0; i < runs_.size(); ++i) {
            std::vector<std::string> cells{key(i)};
            for (const SummaryFigure& figure : figures[i]) {
                cells.push_back(figure.value.empty() ? "-" : escaped(figure.value));
            }
            rows += table_row("td", cells, "number");
        }
        return "<h2>Results</h2>\n" + element("div", element("table", "\n" + rows), "card scroll") + "\n";
    }

    /// A chart with one curve a run.
    std::string chart(const std::string& title, Quantity quantity, const std::string& name, const StepNumber& number,
                      const std::string& note = "") const {
        Chart chart{title, note, quantity, true, {}};
        for (size_t i = 0; i < runs_.size(); ++i) add_curve(chart, i, name, number);
        return draw_chart(chart);
    }

    /// False where the run has nothing for it.
    bool add_curve(Chart& chart, size_t run, const std::string& name, const StepNumber& number, int shift = 0) const {
        ChartCurve curve;
        for (const StepEvent& step : runs_[run].steps) {
            if (const auto value = number(step)) curve.curve.add(static_cast<double>(step.step), *value);
        }
        curve.name = is_one() ? name : runs_[run].name;
        curve.colour = (colour(run) + shift) % kNumColours;
        if (curve.curve.size() == 0) return false;
        chart.curves.push_back(std::move(curve));
        return true;
    }

    std::string loss_chart() const {
        Chart chart{"Loss", "", Quantity::Plain, false, {}};
        for (size_t i = 0; i < runs_.size(); ++i) {
            const auto loss = [](const StepEvent& step) { return std::optional(step.loss); };
            if (add_curve(chart, i, "train", loss)) smooth(chart);
            add_evaluations(chart, i);
        }
        return draw_chart(chart);
    }

    /// The last curve goes to the background of its own mean, where it is long.
    static void smooth(Chart& chart) {
        ChartCurve mean = chart.curves.back();
        const size_t window = smoothing_window(mean.curve.size());
        if (window == 1) return;
        chart.curves.back().faint = true;
        mean.curve = moving_mean(mean.curve, window);
        mean.name += ", mean of " + std::to_string(window);
        chart.curves.push_back(std::move(mean));
    }

    void add_evaluations(Chart& chart, size_t run) const {
        ChartCurve curve;
        for (const EvalEvent& event : runs_[run].evaluations) {
            curve.curve.add(static_cast<double>(event.step), event.loss);
        }
        if (curve.curve.size() == 0) return;
        curve.name = is_one() ? "validation" : runs_[run].name + ", validation";
        curve.colour = is_one() ? 1 : colour(run);
        curve.dotted = true;
        chart.curves.push_back(std::move(curve));
    }

    std::string bubble_chart() const {
        Chart chart{"Waiting for messages", "share of the step", Quantity::Share, true, {}};
        for (size_t i = 0; i < runs_.size(); ++i) {
            add_curve(chart, i, "mean of the ranks", [](const StepEvent& step) { return step.bubble_mean; });
            if (!is_one()) continue;
            const auto worst = [](const StepEvent& step) { return step.bubble_worst; };
            add_curve(chart, i, "worst rank", worst, 1);
            // What the schedule has with the measured times of its stages, if messages cost nothing.
            const auto predicted = [](const StepEvent& step) { return step.bubble_predicted; };
            add_curve(chart, i, "by the schedule alone", predicted, 2);
        }
        return draw_chart(chart);
    }

    std::string memory_chart() const {
        const auto resident = [](const StepEvent& step) {
            return std::optional(static_cast<double>(step.memory_bytes));
        };
        const auto activations = [](const StepEvent& step) {
            return std::optional(static_cast<double>(step.activation_bytes));
        };
        Chart chart{"Memory", "of the fullest rank", Quantity::Bytes, true, {}};
        for (size_t i = 0; i < runs_.size(); ++i) {
            add_curve(chart, i, "resident", resident);
            if (is_one()) add_curve(chart, i, "activations and messages", activations, 1);
        }
        return draw_chart(chart);
    }

    std::string charts() const {
        const auto tokens = [](const StepEvent& step) {
            return step.tokens_per_second > 0 ? std::optional(step.tokens_per_second) : std::nullopt;
        };
        const auto samples = [](const StepEvent& step) { return std::optional(step.samples_per_second); };
        const auto flops = [](const StepEvent& step) {
            return step.flops > 0 ? std::optional(step.flops_per_second()) : std::nullopt;
        };
        const bool has_tokens =
            std::all_of(summaries_.begin(), summaries_.end(), [](const RunSummary& one) { return one.has_tokens; });
        std::string text = loss_chart();
        text += has_tokens ? chart("Rate", Quantity::Count, "tokens a second", tokens, "tokens a second")
                           : chart("Rate", Quantity::Count, "samples a second", samples, "samples a second");
        text += chart("Useful work", Quantity::Count, "FLOP/s of the job, recompute not counted", flops,
                      "FLOP/s of the job, recompute not counted");
        text += bubble_chart();
        text += memory_chart();
        text += chart(
            "Gradient norm", Quantity::Plain, "before clipping",
            [](const StepEvent& step) { return std::optional(step.grad_norm); }, "before clipping");
        text += chart(
            "Learning rate", Quantity::Plain, "default group",
            [](const StepEvent& step) { return std::optional(step.lr); }, "default group");
        text += chart(
            "Time of a step", Quantity::Plain, "milliseconds",
            [](const StepEvent& step) { return std::optional(step.step_ms); }, "milliseconds");
        if (text.empty()) return element("p", "No step was finished yet.") + "\n";
        return "<h2>Curves</h2>\n" + element("div", "\n" + text, "charts") + "\n";
    }

    std::string steps() const {
        std::string text = "<h2>A step</h2>\n";
        for (size_t i = 0; i < runs_.size(); ++i) {
            std::string why;
            const auto picture = picture_of(runs_[i], runs_[i].settings, why);
            const std::string name = setting(runs_[i].settings, "pipeline.schedule_type").value_or("Time-line");
            std::string inside = "<figcaption>" + (is_one() ? "" : key(i) + ": ") + escaped(name) + " <small>" +
                                 escaped(picture ? picture->caption : why) + "</small></figcaption>\n";
            if (picture) inside += element("div", draw_step(*picture), "scroll") + action_legend(*picture);
            if (!runs_[i].timeline.empty()) inside += busy_table(runs_[i]);
            text += element("figure", inside, "card") + "\n";
        }
        return text + stages() + waiting();
    }

    static std::string action_legend(const StepPicture& picture) {
        static const std::pair<const char*, const char*> kKinds[] = {
            {"F", "forward"}, {"B", "backward"}, {"I", "gradient of inputs"}, {"W", "gradient of weights"}};
        std::string text;
        for (const auto& [kind, meaning] : kKinds) {
            const bool is_there =
                std::any_of(picture.actions.begin(), picture.actions.end(),
                            [&, wanted = kind](const TimedAction& one) { return one.kind == wanted; });
            if (is_there)
                text += element("li", std::string("<i></i>") + kind + ": " + meaning, std::string("swatch ") + kind);
        }
        return element("ul", text + element("li", "numbers are microbatches; darker: later stages of a rank"),
                       "legend");
    }

    static std::string track(const std::vector<std::pair<const char*, double>>& parts) {
        std::string text;
        for (const auto& [kind, share] : parts) {
            text += std::string("<i class=\"") + kind + "\" style=\"width:" + coordinate(100 * share) + "%\"></i>";
        }
        return element("div", text, "track");
    }

    static std::string busy_table(const RecordedRun& run) {
        std::string rows = table_row("th", {"rank", "computes", ""});
        for (const auto& [rank, share] : busy_shares(run.timeline)) {
            rows += table_row("td", {std::to_string(rank), quantity_text(share, Quantity::Share),
                                     track({{"busy", std::min(1.0, share)}})});
        }
        return element("table", "\n" + rows);
    }

    std::string stages() const {
        std::string text;
        for (size_t i = 0; i < runs_.size(); ++i) {
            if (!runs_[i].stages.empty()) text += stage_table(i);
        }
        return text.empty() ? "" : "<h2>Time of the stages</h2>\n" + text;
    }

    std::string stage_table(size_t run) const {
        const auto ms = [](double value) { return fixed_text(value, 2) + " ms"; };
        const std::vector<StageMean>& stages = runs_[run].stages;
        double most = 1e-9;
        for (const StageMean& stage : stages) most = std::max(most, stage.total_ms());
        std::string rows = table_row("th", {"stage", "PP rank", "forward", "backward", "messages", "waiting", ""});
        for (size_t i = 0; i < stages.size(); ++i) {
            const StageMean& stage = stages[i];
            rows += table_row("td", {std::to_string(i), std::to_string(stage.rank), ms(stage.forward_ms),
                                     ms(stage.backward_ms), ms(stage.transfer_ms), ms(stage.wait_ms),
                                     track({{"forward", stage.forward_ms / most},
                                            {"backward", stage.backward_ms / most},
                                            {"transfer", stage.transfer_ms / most}})});
        }
        const std::string name = is_one() ? "" : element("p", key(run));
        return element("div", name + element("table", "\n" + rows), "card scroll") + "\n";
    }

    /// Which ranks wait longest, by how many steps.
    std::string waiting() const {
        std::string rows;
        for (size_t i = 0; i < runs_.size(); ++i) {
            for (const WorstRank& worst : summaries_[i].worst_ranks) {
                rows += table_row("td", {key(i), "rank " + std::to_string(worst.rank),
                                         quantity_text(worst.share_of_steps, Quantity::Share),
                                         quantity_text(worst.mean_wait, Quantity::Share)});
            }
        }
        if (rows.empty()) return "";
        const std::string header = table_row("th", {"run", "waits longest", "in so many of the steps", "and then for"});
        return "<h2>Who waits</h2>\n" + element("div", element("table", "\n" + header + rows), "card scroll") + "\n";
    }

    std::string memory() const {
        std::string text;
        for (size_t i = 0; i < runs_.size(); ++i) {
            if (runs_[i].memory && !runs_[i].memory->ranks.empty()) text += memory_table(i);
        }
        return text.empty() ? "" : "<h2>Memory of the ranks</h2>\n" + text;
    }

    std::string memory_table(size_t run) const {
        const std::vector<MemoryEvent::Rank>& ranks = runs_[run].memory->ranks;
        double most = 1;
        for (const auto& rank : ranks) {
            most = std::max(most, static_cast<double>(rank.state_bytes) + static_cast<double>(rank.activation_bytes));
        }
        std::string rows = table_row("th", {"rank", "weights and state", "activations and messages", "simulated", ""});
        for (size_t i = 0; i < ranks.size(); ++i) {
            const auto& rank = ranks[i];
            rows += table_row("td",
                              {std::to_string(i), bytes_text(rank.state_bytes), bytes_text(rank.activation_bytes),
                               bytes_text(rank.least_simulated_bytes) + " to " + bytes_text(rank.most_simulated_bytes),
                               track({{"state", static_cast<double>(rank.state_bytes) / most},
                                      {"acts", static_cast<double>(rank.activation_bytes) / most}})});
        }
        const std::string name = is_one() ? "" : element("p", key(run));
        return element("div", name + element("table", "\n" + rows), "card scroll") + "\n";
    }

    std::string compared() const {
        if (is_one()) return "";
        std::vector<Settings> settings;
        for (const RecordedRun& run : runs_) settings.push_back(run.settings);
        const std::vector<Difference> found = differences(settings);
        if (found.empty()) return "<h2>Settings</h2>\n" + element("p", "The plans of these runs say the same.") + "\n";
        std::vector<std::string> header{"setting"};
        for (size_t i = 0; i < runs_.size(); ++i) header.push_back(key(i));
        std::string rows = table_row("th", header);
        for (const Difference& difference : found) {
            std::vector<std::string> cells{element("code", escaped(difference.key))};
            for (const auto& value : difference.values) cells.push_back(value ? element("code", escaped(*value)) : "-");
            rows += table_row("td", cells);
        }
        return "<h2>Settings that differ</h2>\n" + element("div", element("table", "\n" + rows), "card scroll") + "\n";
    }

    std::string plans() const {
        std::string text;
        for (size_t i = 0; i < runs_.size(); ++i) {
            if (runs_[i].plan_text.empty()) continue;
            text += element("details",
                            element("summary", is_one() ? "plan.toml, with all defaults" : key(i)) +
                                element("pre", escaped(runs_[i].plan_text)),
                            "card") +
                    "\n";
        }
        return text.empty() ? "" : "<h2>Plan</h2>\n" + text;
    }

    const std::vector<RecordedRun>& runs_;
    std::vector<RunSummary> summaries_;
};

}  // namespace

std::string report_page(const std::vector<RecordedRun>& runs) {
    check(!runs.empty(), "a report has a run");
    return ReportPage(runs).write();
}

}  // namespace vpp
