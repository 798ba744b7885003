#include "engine/verify_matrix.hpp"

#include <algorithm>
#include <iterator>
#include <optional>

#include "base/error.hpp"
#include "base/random.hpp"
#include "comm/collective.hpp"
#include "engine/pairwise.hpp"
#include "engine/recompute_choice.hpp"
#include "graph/split.hpp"
#include "plan/batch_size.hpp"
#include "schedule/generators.hpp"

namespace vpp {

namespace {

constexpr const char* kRandom = "random";

std::vector<std::string> schedules_of(const Plan& plan, const VerifyRequest& request) {
    if (!request.all_schedules) return {plan.pipeline.schedule_type};
    const std::vector<std::string> runnable = schedule_names();
    std::vector<std::string> names;
    for (const ScheduleKind& kind : schedule_kinds()) {
        const bool is_runnable = kind.trains && std::ranges::find(runnable, kind.name) != runnable.end();
        if (is_runnable && !kind.is_other_spelling()) names.emplace_back(kind.name);
    }
    return names;
}

/// Stages per rank to try: those asked for, else the plan's; over all schedules also the fewest that each takes.
std::vector<int> chunks_of(const Plan& plan, const VerifyRequest& request, const std::string& schedule) {
    if (!request.chunks.empty()) return request.chunks;
    std::vector<int> chunks{plan.pipeline.virtual_chunks};
    if (!request.all_schedules) return chunks;
    for (const ScheduleKind& kind : schedule_kinds()) {
        if (kind.name != schedule) continue;
        chunks = {kind.fewest_per_rank};
        if (kind.fewest_per_rank < 2 && kind.most_per_rank >= 2) chunks.push_back(2);
        const int own = plan.pipeline.virtual_chunks;
        const bool fits = own >= kind.fewest_per_rank && own <= kind.most_per_rank;
        if (fits && std::find(chunks.begin(), chunks.end(), own) == chunks.end()) chunks.push_back(own);
    }
    return chunks;
}

struct SplitChoice {
    std::string method;
    int random_cut = 0;
};

std::vector<SplitChoice> splits_of(const Plan& plan, const VerifyRequest& request) {
    std::vector<SplitChoice> splits;
    const bool plans_own = !request.all_splits && request.random_cuts == 0;
    if (plans_own) splits.push_back({plan.pipeline.is_by_hand() ? plan.pipeline.mode : plan.pipeline.split_method});
    for (const std::string& method : request.all_splits ? split_methods() : std::vector<std::string>{}) {
        // Split points fit one number of stages; without any the method says nothing.
        if (method != "MANUAL" || !plan.pipeline.split_points.empty()) splits.push_back({method});
    }
    for (int i = 0; i < request.random_cuts; ++i) splits.push_back({kRandom, i});
    return splits;
}

/// Whether stages of tables, as many as there are tables, and those of a rank say how many ranks the pipeline has.
bool is_by_chunks(const Plan& plan, const VerifyRequest& request) {
    return plan.pipeline.is_by_hand() && request.stages.empty() && !request.chunks.empty();
}

int ranks_with(const Plan& plan, int chunks) {
    const int tables = static_cast<int>(plan.pipeline.stages.size());
    return tables % chunks == 0 ? tables / chunks : *plan.mesh.pp;
}

/// Ranks of the pipeline.
std::vector<int> stages_of(const Plan& plan, const VerifyRequest& request) {
    if (!request.stages.empty()) return request.stages;
    if (!is_by_chunks(plan, request)) return {*plan.mesh.pp};
    std::vector<int> stages;
    for (int chunks : request.chunks) {
        const int fitting = ranks_with(plan, chunks);
        if (std::find(stages.begin(), stages.end(), fitting) == stages.end()) stages.push_back(fitting);
    }
    return stages;
}

/// Whether ranks and stages of a rank belong together.
bool is_wanted(const Plan& plan, const VerifyRequest& request, int num_stages, int chunks) {
    return !is_by_chunks(plan, request) || num_stages == ranks_with(plan, chunks);
}

/// Numbers of replicas, with ZeRO-1 and without; one replica has nothing to share.
std::vector<std::pair<int, bool>> replicas_of(const Plan& plan, const VerifyRequest& request) {
    std::vector<std::pair<int, bool>> choices;
    for (int replicas : request.replicas.empty() ? std::vector<int>{*plan.mesh.dp} : request.replicas) {
        for (bool zero1 : request.zero1.empty() ? std::vector<bool>{plan.mesh.zero1} : request.zero1) {
            const std::pair choice(replicas, zero1 && replicas > 1);
            if (std::find(choices.begin(), choices.end(), choice) == choices.end()) choices.push_back(choice);
        }
    }
    return choices;
}

/// Rules refuse; everything else is an error of the job.
bool is_refusal(const Error& error) {
    return error.kind() == ErrorKind::Plan;
}

std::string cuts_text(const std::vector<int>& cuts) {
    if (cuts.empty()) return "not cut";
    std::string text = cuts.size() == 1 ? "cut before op " : "cut before ops ";
    for (size_t i = 0; i < cuts.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(cuts[i]);
    return text;
}

/// The values of a combination as numbers, an axis each, in the order in which they come.
class AxisNumbers {
  public:
    std::vector<int> row(const LayoutChoice& choice) {
        const std::vector<std::string> values{std::to_string(choice.num_stages),
                                              std::to_string(choice.num_replicas),
                                              std::to_string(choice.zero1),
                                              std::to_string(choice.num_microbatches),
                                              choice.schedule,
                                              std::to_string(choice.chunks),
                                              choice.split + std::to_string(choice.random_cut),
                                              choice.recompute};
        known_.resize(values.size());
        std::vector<int> numbers;
        for (size_t axis = 0; axis < values.size(); ++axis) {
            std::vector<std::string>& known = known_[axis];
            const auto found = std::find(known.begin(), known.end(), values[axis]);
            numbers.push_back(static_cast<int>(std::distance(known.begin(), found)));
            if (found == known.end()) known.push_back(values[axis]);
        }
        return numbers;
    }

  private:
    std::vector<std::vector<std::string>> known_;
};

class MatrixRun {
  public:
    MatrixRun(LayoutVerifier& verifier, Transport& transport) : verifier_(verifier), transport_(transport) {}

    /// What became of it, in one word.
    std::string refuse(const LayoutChoice& choice, const Error& error) {
        result_.refused[error.problems().front().message].push_back(choice.text());
        ++result_.all.refused;
        ++result_.by_schedule[choice.schedule].refused;
        return "refused";
    }

    std::string compare(const LayoutChoice& choice, const Layout& layout) {
        const VerifyResult compared = verifier_.compare(layout);
        if (transport_.rank() != 0) {
            ++result_.all.equal;
            return "";
        }
        for (const auto& [kind, count] : compared.by_kind) result_.by_kind[kind] += count;
        ScheduleTally& tally = result_.by_schedule[choice.schedule];
        if (compared.is_equal) {
            ++result_.all.equal;
            ++tally.equal;
            if (compared.is_through_host && choice.num_ranks() > 1) result_.through_host.push_back(choice.text());
            return "equal";
        }
        ++result_.all.different;
        ++tally.different;
        result_.different.push_back(choice.text());
        if (result_.different.size() == 1) {
            result_.first_difference = compared.difference;
            result_.first_cuts = cuts_text(layout.program.training.split.cuts);
        }
        return "DIFFERENT";
    }

    MatrixResult& result() { return result_; }

  private:
    LayoutVerifier& verifier_;
    Transport& transport_;
    MatrixResult result_;
};

/// Why all were refused; what is said of most of them first, since that is what schedules have in common.
std::string refused_text(const MatrixResult& result, size_t num_choices) {
    if (num_choices == 0) return "there is no combination";
    if (num_choices == 1) return "the only combination was refused, since " + result.refused.begin()->first;
    std::vector<std::pair<std::string, std::vector<std::string>>> reasons(result.refused.begin(), result.refused.end());
    std::stable_sort(reasons.begin(), reasons.end(),
                     [](const auto& one, const auto& other) { return one.second.size() > other.second.size(); });
    std::string text = "all " + std::to_string(num_choices) + " combinations were refused";
    for (const auto& [reason, layouts] : reasons) {
        text += "; " + std::to_string(layouts.size()) + " (" + layouts.front() +
                (layouts.size() > 1 ? " and others" : "") + ") since " + reason;
    }
    return text;
}

}  // namespace

std::string LayoutChoice::text() const {
    return schedule + ", " + std::to_string(num_stages) + (num_stages == 1 ? " rank x " : " ranks x ") +
           std::to_string(chunks) + (num_replicas > 1 ? ", DP " + std::to_string(num_replicas) : "") +
           (zero1 ? ", ZeRO-1" : "") + ", M " + std::to_string(num_microbatches) + ", " + split +
           (split == kRandom ? ":" + std::to_string(random_cut) : "") +
           (recompute.empty() ? "" : ", recompute " + recompute);
}

std::vector<LayoutChoice> list_layouts(const Plan& plan, const VerifyRequest& request) {
    if (plan.pipeline.is_by_hand() && request.all_splits) {
        throw Error(ErrorKind::CommandLine,
                    "--all-splits has no meaning in mode = \"MANUAL_EAGER\": the stages are those of "
                    "[[pipeline.stage]]; leave it out (--cuts random:N cuts their model elsewhere)");
    }
    const std::vector<int> stages = stages_of(plan, request);
    const std::vector<int> microbatches =
        request.microbatches.empty() ? std::vector<int>{*plan.pipeline.num_microbatches} : request.microbatches;
    const std::vector<std::string> recompute =
        request.recompute.empty() ? std::vector<std::string>{""} : request.recompute;
    for (const std::string& text : request.recompute) recompute_from_text(text, plan.pipeline.recompute);
    std::vector<LayoutChoice> choices;
    const auto add_schedules = [&](LayoutChoice choice) {
        for (const std::string& schedule : schedules_of(plan, request)) {
            choice.schedule = schedule;
            for (int chunks : chunks_of(plan, request, schedule)) {
                if (!is_wanted(plan, request, choice.num_stages, chunks)) continue;
                choice.chunks = chunks;
                choices.push_back(choice);
            }
        }
    };
    const auto add_splits = [&](LayoutChoice choice) {
        for (const SplitChoice& split : splits_of(plan, request)) {
            choice.split = split.method;
            choice.random_cut = split.random_cut;
            for (const std::string& text : recompute) {
                choice.recompute = text;
                add_schedules(choice);
            }
        }
    };
    for (int num_microbatches : microbatches) {
        for (int num_stages : stages) {
            for (const auto& [num_replicas, zero1] : replicas_of(plan, request)) {
                LayoutChoice choice;
                choice.num_stages = num_stages;
                choice.num_replicas = num_replicas;
                choice.zero1 = zero1;
                choice.num_microbatches = num_microbatches;
                add_splits(choice);
            }
        }
    }
    return choices;
}

PairwiseLayouts choose_pairwise(const Plan& plan, const Program& base, const std::vector<LayoutChoice>& choices,
                                uint64_t seed) {
    AxisNumbers numbers;
    std::vector<std::vector<int>> rows;
    for (const LayoutChoice& choice : choices) rows.push_back(numbers.row(choice));
    const PairwiseCover cover = cover_pairs(rows, [&](size_t i) {
        try {
            make_layout(plan, base, choices[i], seed);
            return true;
        } catch (const Error& error) {
            if (!is_refusal(error)) throw;
            return false;
        }
    });
    PairwiseLayouts few{{}, choices.size(), cover.num_pairs, cover.num_impossible};
    for (const auto* taken : {&cover.rows, &cover.refused}) {
        for (size_t i : *taken) few.choices.push_back(choices[i]);
    }
    return few;
}

std::vector<int> random_cuts(const Graph& graph, int num_stages, uint64_t key) {
    std::vector<int> legal;
    for (int op = 1; op < graph.num_ops(); ++op) {
        if (graph.cuts[static_cast<size_t>(op)].legal) legal.push_back(op);
    }
    const auto wanted = static_cast<size_t>(num_stages - 1);
    if (legal.size() < wanted) {
        throw Error(ErrorKind::Plan, "the model has " + std::to_string(legal.size()) + " legal cuts, " +
                                         std::to_string(num_stages) + " stages need " + std::to_string(wanted));
    }
    for (size_t i = 0; i < wanted; ++i) {  // the first steps of a shuffle
        const size_t other = i + mix64(combine_key(key, i)) % (legal.size() - i);
        std::swap(legal[i], legal[other]);
    }
    legal.resize(wanted);
    std::sort(legal.begin(), legal.end());
    return legal;
}

Layout make_layout(const Plan& plan, const Program& base, const LayoutChoice& choice, uint64_t seed) {
    Layout layout{plan, {}};
    PipelinePlan& pipeline = layout.plan.pipeline;
    layout.plan.mesh.pp = choice.num_stages;
    layout.plan.mesh.dp = choice.num_replicas;
    layout.plan.mesh.zero1 = choice.zero1;
    pipeline.num_stages = choice.num_stages;
    pipeline.virtual_chunks = choice.chunks;
    pipeline.choose_virtual_chunks = pipeline.choose_virtual_chunks && choice.schedule == "AUTO";
    pipeline.num_microbatches = choice.num_microbatches;
    pipeline.schedule_type = choice.schedule;
    if (!choice.recompute.empty()) pipeline.recompute = recompute_from_text(choice.recompute, pipeline.recompute);
    layout.plan.train.global_batch_size = base.microbatch_size * parts_of_batch(layout.plan);
    std::optional<std::vector<int>> cuts;
    if (choice.split == kRandom) {
        const int num_stages = choice.num_stages * choice.chunks;
        const uint64_t key = combine_key(combine_key(mix64(seed), static_cast<uint64_t>(num_stages)),
                                         static_cast<uint64_t>(choice.random_cut));
        cuts = random_cuts(base.training.graph, num_stages, key);
    } else if (!plan.pipeline.is_by_hand()) {
        pipeline.split_method = choice.split;
    }
    layout.program = with_layout(base, layout.plan, cuts);
    return layout;
}

MatrixResult verify_matrix(const Plan& plan, const Program& base, const std::vector<LayoutChoice>& choices,
                           LayoutVerifier& verifier, Transport& transport, int64_t steps, uint64_t seed,
                           const AfterLayout& after) {
    MatrixRun run(verifier, transport);
    for (const LayoutChoice& choice : choices) {
        check(choice.num_ranks() <= transport.size(), "a layout has ranks of the job");
        // The same on every rank: layouts are made from the same values by the same code.
        std::optional<Layout> layout;
        std::string outcome;
        try {
            layout = make_layout(plan, base, choice, seed);
        } catch (const Error& error) {
            if (!is_refusal(error)) throw;
            outcome = run.refuse(choice, error);
        }
        check_equal(transport, "what becomes of a layout", layout ? to_hex(digest_of(layout->program)) : "refused");
        if (layout) outcome = run.compare(choice, *layout);
        if (after && transport.rank() == 0) after(choice, outcome);
    }
    MatrixResult& result = run.result();
    result.steps = steps;
    result.num_references = verifier.num_references();
    if (result.all.equal + result.all.different > 0) return result;
    throw Error(ErrorKind::Plan, "nothing was compared: " + refused_text(result, choices.size()));
}

}  // namespace vpp
