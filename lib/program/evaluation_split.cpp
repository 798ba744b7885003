#include "program/evaluation_split.hpp"

#include <algorithm>
#include <limits>

#include "base/error.hpp"
#include "graph/split.hpp"

namespace vpp {

namespace {

/// What never does may be read anywhere.
bool changes(const GraphParameter& of_training) {
    return !of_training.uses.empty() && (of_training.requires_grad || of_training.written);
}

/// For every op of the evaluation graph the training stage that has its parameters; -1 where it has none. The n-th use
/// of a tied parameter stays with the n-th use in training: there is its copy.
std::vector<int> stages_of_ops(const Graph& evaluation, const Graph& training, const Split& split) {
    std::vector<int> stages(evaluation.ops.size(), -1);
    for (size_t i = 0; i < training.parameters.size(); ++i) {
        const GraphParameter& entry = training.parameters[i];
        const std::vector<int>& uses = evaluation.parameters[i].uses;
        if (!changes(entry)) continue;
        const bool alike = uses.size() == entry.uses.size();
        for (size_t n = 0; n < uses.size(); ++n) {
            int& stage = stages[static_cast<size_t>(uses[n])];
            stage = std::max(stage, split.stage_of_op(entry.uses[alike ? n : 0]));
        }
    }
    return stages;
}

/// The cuts before one stage that leave all parameters where they are: [first, last].
struct CutRange {
    int first = 0;
    int last = 0;
};

/// One entry per stage; that of stage 0 is not used. Behind the last op of earlier stages, and not behind the first of
/// this or a later one; early enough that a legal cut remains for every later stage.
std::vector<CutRange> fitting_cuts(const Graph& evaluation, const std::vector<int>& stages, int num_stages) {
    std::vector<CutRange> ranges(static_cast<size_t>(num_stages));
    int later = evaluation.num_ops();
    for (int stage = num_stages - 1; stage > 0; --stage) {
        CutRange& range = ranges[static_cast<size_t>(stage)];
        range = {stage, later - 1};
        for (int op = 0; op < evaluation.num_ops(); ++op) {
            const int own = stages[static_cast<size_t>(op)];
            if (own >= 0 && own < stage) range.first = std::max(range.first, op + 1);
            if (own >= stage) range.last = std::min(range.last, op);
        }
        while (range.last > 0 && !evaluation.cuts[static_cast<size_t>(range.last)].legal) --range.last;
        later = range.last;
    }
    return ranges;
}

/// The cut with the fewest bytes over it, then the earliest; -1 when none is legal.
int cheapest_cut(const Graph& graph, const std::vector<int64_t>& cut_bytes, int first, int last) {
    int best = -1;
    int64_t best_bytes = std::numeric_limits<int64_t>::max();
    for (int cut = first; cut <= last; ++cut) {
        const int64_t bytes =
            graph.cuts[static_cast<size_t>(cut)].legal ? cut_bytes[static_cast<size_t>(cut)] : best_bytes;
        if (bytes >= best_bytes) continue;
        best = cut;
        best_bytes = bytes;
    }
    return best;
}

}  // namespace

std::vector<int> match_split(const Graph& evaluation, const Graph& training, const Split& training_split) {
    check(evaluation.parameters.size() == training.parameters.size(), "both graphs are of one model");
    const std::vector<int> stages = stages_of_ops(evaluation, training, training_split);
    const std::vector<CutRange> ranges = fitting_cuts(evaluation, stages, training_split.num_stages());
    const std::vector<int64_t> bytes = all_cut_bytes(evaluation);
    std::vector<int> cuts;
    for (int stage = 1; stage < training_split.num_stages(); ++stage) {
        const CutRange& range = ranges[static_cast<size_t>(stage)];
        const int first = std::max(range.first, cuts.empty() ? 1 : cuts.back() + 1);
        const int best = cheapest_cut(evaluation, bytes, first, range.last);
        if (best < 0) {
            throw Error(ErrorKind::Plan,
                        "stage " + std::to_string(stage) +
                            " cannot be matched in evaluation mode: no legal cut leaves its parameters "
                            "in one stage; choose other cuts, or leave out data.val");
        }
        cuts.push_back(best);
    }
    return cuts;
}

void check_weights_follow(const Graph& evaluation, const Split& split, const Graph& training,
                          const Split& training_split) {
    for (size_t i = 0; i < training.parameters.size(); ++i) {
        const GraphParameter& entry = training.parameters[i];
        if (!changes(entry)) continue;
        for (int use : evaluation.parameters[i].uses) {
            const int stage = split.stage_of_op(use);
            const auto is_there = [&](int trained) { return training_split.stage_of_op(trained) == stage; };
            if (std::ranges::any_of(entry.uses, is_there)) continue;
            throw Error(ErrorKind::Plan,
                        "in evaluation mode '" + entry.name + "' is used in stage " + std::to_string(stage) +
                            ", and in training in stage " +
                            std::to_string(training_split.stage_of_op(entry.uses.front())) +
                            ": an op joins there what training has in several stages; choose other cuts, or leave "
                            "out data.val");
        }
    }
}

}  // namespace vpp
