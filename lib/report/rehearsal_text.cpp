#include "report/rehearsal_text.hpp"

#include "base/dtype.hpp"
#include "base/error.hpp"
#include "base/units.hpp"

namespace vpp {

namespace {

std::string right(const std::string& text, size_t width) {
    return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

std::string left(std::string text, size_t width) {
    if (text.size() < width) text.resize(width, ' ');
    return text;
}

/// Cells with a blank between them, each as wide as said.
std::string aligned_row(const std::vector<std::pair<std::string, size_t>>& cells) {
    std::string text;
    for (const auto& [cell, width] : cells) text += (text.empty() ? "" : " ") + right(cell, width);
    return text + '\n';
}

std::string head(const RehearsalReport& report) {
    return "dry run: a microbatch of " + counted_text(report.microbatch_size, "sample") + " through " +
           counted_text(static_cast<int64_t>(report.stages.size()), "stage") + " on " +
           counted_text(static_cast<int64_t>(report.ranks.size()), "rank") + ", loss " +
           formatted("%.6g", report.loss) + '\n';
}

std::string stages_text(const RehearsalReport& report) {
    std::string text = aligned_row({{"stage", 5}, {"PP rank", 8}, {"forward", 10}, {"backward", 10}, {"transfer", 10}});
    for (size_t i = 0; i < report.stages.size(); ++i) {
        const StageTimesEvent& stage = report.stages[i];
        text += aligned_row({{std::to_string(i), 5},
                             {std::to_string(stage.rank), 8},
                             {fixed_text(stage.forward_ms, 2), 10},
                             {fixed_text(stage.backward_ms, 2), 10},
                             {fixed_text(stage.transfer_ms, 2), 10}});
    }
    return text + "milliseconds of one microbatch, the quickest of " +
           counted_text(report.num_passes, "pass", "passes") + " behind a first one\n";
}

std::string edges_text(const RehearsalReport& report) {
    if (report.edges.empty()) return "";
    std::string text = " from    to      bytes  dtype    shape            tensor\n";
    for (const RehearsalReport::Edge& edge : report.edges) {
        text += right(std::to_string(edge.from), 5) + right(std::to_string(edge.to), 6) +
                right(bytes_text(edge.bytes), 11) + "  " + left(edge.dtype, 8) + ' ' +
                left(shape_text(edge.shape), 16) + ' ' + printable(edge.name) + '\n';
    }
    return text;
}

std::string ranks_text(const RehearsalReport& report) {
    std::string text = aligned_row(
        {{"rank", 5}, {"state", 10}, {"to be saved", 11}, {"microbatch", 10}, {"whole step", 22}, {"process", 10}});
    for (size_t i = 0; i < report.ranks.size(); ++i) {
        const RehearsalReport::Rank& rank = report.ranks[i];
        text +=
            aligned_row({{std::to_string(i), 5},
                         {bytes_text(rank.state_bytes), 10},
                         {bytes_text(rank.full_state_bytes), 11},
                         {bytes_text(rank.activation_bytes), 10},
                         {bytes_text(rank.least_simulated_bytes) + " to " + bytes_text(rank.most_simulated_bytes), 22},
                         {bytes_text(rank.process_bytes), 10}});
    }
    return text + "state: weights and buffers; with the optimizer's it is what is saved\n";
}

}  // namespace

std::string rehearsal_text(const RehearsalReport& report) {
    std::string text = head(report) + stages_text(report) + edges_text(report) + ranks_text(report);
    text += "a step: " + counted_text(report.num_microbatches, "microbatch", "microbatches") + " by " +
            report.schedule + " in about " + fixed_text(report.step_ms, 2) + " ms, bubble " +
            fixed_text(100 * report.bubble, 1) + " % (simulated)\n";
    if (!report.are_waits_known) text += "there are more ranks than cores, so these times are too long\n";
    return text + "nothing was updated and nothing was written\n";
}

}  // namespace vpp
