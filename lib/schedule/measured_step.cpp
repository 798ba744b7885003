#include "schedule/measured_step.hpp"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json_text.hpp"
#include "base/units.hpp"

namespace vpp {

namespace {

constexpr int kNarrowestPicture = 40;

double milliseconds(int64_t nanoseconds) {
    return static_cast<double>(nanoseconds) / kNanosecondsPerMillisecond;
}

const std::vector<Action>& actions_of(const Schedule& lowered, const MeasuredRank& rank) {
    const std::vector<Action>& actions = lowered.actions.at(static_cast<size_t>(rank.pp));
    check(actions.size() == rank.actions.size(), "the time of every action is known");
    return actions;
}

/// The label of a computing action; the stage is left out where the row tells it.
std::string measured_label(const Action& action, bool with_stage) {
    return (with_stage ? std::to_string(action.stage) : "") + word_of(action.kind) + std::to_string(action.microbatch);
}

/// Times to columns of text.
struct Scale {
    int64_t begin = 0;
    int64_t duration = 1;
    size_t columns = 1;

    size_t column_at(int64_t time) const {
        const double part = static_cast<double>(time - begin) / static_cast<double>(duration);
        const double column = std::clamp(part, 0.0, 1.0) * static_cast<double>(columns);
        return static_cast<size_t>(column + 0.5);
    }
};

/// Each action from its begin to its end, over dots. One that is too short for a column has none.
std::string draw_measured_row(const Schedule& lowered, const MeasuredRank& rank, const Scale& scale) {
    const bool with_stage = lowered.num_stages() > lowered.num_ranks;
    const std::vector<Action>& actions = actions_of(lowered, rank);
    const std::vector<ActionSpan> work = work_spans(actions, rank.actions);
    std::string row(scale.columns, '.');
    for (size_t i = 0; i < actions.size(); ++i) {
        if (!is_computing(actions[i].kind)) continue;
        const size_t begin = scale.column_at(work[i].begin + work[i].wait), end = scale.column_at(work[i].end);
        std::string text = measured_label(actions[i], with_stage);
        text.resize(end - begin, '-');
        row.replace(begin, end - begin, text);
    }
    return row;
}

/// The idle part of all ranks while actions ran.
double bubble_of(const Schedule& lowered, const MeasuredStep& step) {
    double busy = 0;
    for (const MeasuredRank& rank : step.ranks) {
        for (const ActionSpan& span : work_spans(actions_of(lowered, rank), rank.actions)) {
            busy += static_cast<double>(span.busy());
        }
    }
    const auto all = static_cast<double>(step.actions_end() - step.begin()) * static_cast<double>(step.ranks.size());
    return all > 0 ? 1 - busy / all : 0;
}

}  // namespace

int64_t MeasuredStep::begin() const {
    int64_t first = ranks.empty() ? 0 : std::numeric_limits<int64_t>::max();
    for (const MeasuredRank& rank : ranks) first = std::min(first, rank.moments.begin);
    return first;
}

int64_t MeasuredStep::actions_end() const {
    int64_t last = begin();
    for (const MeasuredRank& rank : ranks) {
        for (const ActionSpan& action : rank.actions) last = std::max({last, action.end, action.device_end});
    }
    return last;
}

std::string write_timeline(const Schedule& lowered, const MeasuredStep& step) {
    const int64_t begin = step.begin();
    nlohmann::ordered_json actions = nlohmann::ordered_json::array();
    for (size_t number = 0; number < step.ranks.size(); ++number) {
        const MeasuredRank& rank = step.ranks[number];
        const std::vector<Action>& list = actions_of(lowered, rank);
        for (size_t i = 0; i < list.size(); ++i) {
            actions.push_back({{"rank", number},
                               {"stage", list[i].stage},
                               {"microbatch", list[i].microbatch},
                               {"kind", word_of(list[i].kind)},
                               {"begin_ms", milliseconds(rank.actions[i].begin - begin)},
                               {"end_ms", milliseconds(rank.actions[i].end - begin)},
                               {"wait_ms", milliseconds(rank.actions[i].wait)}});
            if (rank.actions[i].device_end == 0) continue;
            actions.back()["card_begin_ms"] = milliseconds(rank.actions[i].device_begin - begin);
            actions.back()["card_end_ms"] = milliseconds(rank.actions[i].device_end - begin);
        }
    }
    const nlohmann::ordered_json timeline{{"step", step.step},
                                          {"schedule", lowered.name},
                                          {"num_ranks", step.ranks.size()},
                                          {"num_stages", lowered.num_stages()},
                                          {"num_microbatches", lowered.num_microbatches},
                                          {"clock_error_ms", milliseconds(step.clock_error)},
                                          {"duration_ms", milliseconds(step.actions_end() - begin)},
                                          {"actions", std::move(actions)}};
    return json_text(timeline) + '\n';
}

std::string draw_measured(const Schedule& lowered, const MeasuredStep& step, int width) {
    const size_t number_width = std::to_string(std::max<size_t>(step.ranks.size(), 1) - 1).size();
    Scale scale;
    scale.begin = step.begin();
    scale.duration = std::max<int64_t>(1, step.actions_end() - scale.begin);
    scale.columns = static_cast<size_t>(std::max(width, kNarrowestPicture)) - number_width - 2;
    std::string text;
    for (size_t number = 0; number < step.ranks.size(); ++number) {
        const std::string name = std::to_string(number);
        text += std::string(number_width - name.size(), ' ') + name + " |" +
                draw_measured_row(lowered, step.ranks[number], scale) + '\n';
    }
    const double column = milliseconds(scale.duration) / static_cast<double>(scale.columns);
    text += "F forward  B backward  I, W its halves  - goes on  . idle\n";
    return text + "step " + std::to_string(step.step) + ": " + fixed_text(milliseconds(scale.duration), 2) +
           " ms, bubble " + fixed_text(100 * bubble_of(lowered, step), 1) +
           " %, one column = " + fixed_text(column, 3) + " ms\n";
}

}  // namespace vpp
