#pragma once
// A run in a few figures.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/run_record.hpp"

namespace vpp {

/// A rank that waited longest in some steps.
struct WorstRank {
    int rank = 0;
    double share_of_steps = 0;  ///< 0 to 1, of those with known waiting
    double mean_wait = 0;       ///< share of those steps
};

struct RunSummary {
    int64_t last_step = 0, total_steps = 0;
    bool is_finished = false;  ///< the last step is done and saved, or the training says so
    std::optional<double> last_loss;
    std::optional<double> best_loss;  ///< of the finite ones
    int64_t best_loss_step = 0;
    std::optional<double> best_evaluation;
    int64_t best_evaluation_step = 0;
    std::optional<double> best_accuracy;  ///< the largest, 0 to 1; like perplexity only where the plan asks for it
    int64_t best_accuracy_step = 0;
    std::optional<double> best_perplexity;  ///< the smallest finite one
    int64_t best_perplexity_step = 0;
    bool has_tokens = false;
    std::optional<double> rate;              ///< median of tokens a second, or of samples
    std::optional<double> flops_rate;        ///< median, a second
    std::optional<double> waiting;           ///< share of a step, mean over ranks and steps
    std::optional<double> bubble;            ///< measured (StepEvent::bubble_idle), mean over the steps
    std::optional<double> predicted_bubble;  ///< the same, simulated
    int64_t memory_bytes = 0;                ///< most of any step
    double seconds = 0;                      ///< in steps
    int64_t num_skipped = 0;
    std::vector<WorstRank> worst_ranks;  ///< by share, largest first
};

RunSummary summary_of(const RecordedRun& run);

/// One figure as text; an empty value is not known.
struct SummaryFigure {
    std::string name, value;
    std::string remark;         ///< behind the name, where there is room
    std::string short_name;     ///< above a column; empty: the name
    bool is_asked_for = false;  ///< a plan has to ask for it
};

/// Always the same figures in the same order.
std::vector<SummaryFigure> summary_figures(const RunSummary& summary);

/// The figures of several runs, to stand in a table: the same ones for each, without those that had to be asked for and
/// that no run has.
std::vector<std::vector<SummaryFigure>> figures_of_runs(const std::vector<RunSummary>& summaries);

}  // namespace vpp
