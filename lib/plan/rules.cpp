#include "plan/rules.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "base/suggest.hpp"
#include "base/units.hpp"
#include "plan/batch_size.hpp"
#include "plan/data_rules.hpp"
#include "plan/findings.hpp"
#include "plan/lr_rules.hpp"
#include "plan/optimizer_rules.hpp"
#include "plan/plan_text.hpp"
#include "plan/stage_rules.hpp"
#include "plan/transform_rules.hpp"
#include "plan/value.hpp"

namespace vpp {

namespace {

using Texts = std::vector<std::string>;

/// "[a, b]" with an entry twice is a slip of the pen.
void check_unique(const Texts& texts, const std::string& key, Findings& findings) {
    std::set<std::string> seen;
    for (size_t i = 0; i < texts.size(); ++i) {
        if (seen.insert(texts[i]).second) continue;
        findings.add(key + '[' + std::to_string(i) + ']', key + " names '" + texts[i] + "' twice");
    }
}

/// For messages.
std::string loss_text(const Plan& plan) {
    return plan.loss ? "kind " + toml_quoted(plan.loss->kind) : "no [loss]";
}

void check_model(const Plan& plan, Findings& findings) {
    if (plan.loss && plan.positions.contains("model.loss_output")) {
        findings.add("model.loss_output",
                     "model.loss_output and [loss] exclude each other: either forward returns the loss or [loss] makes "
                     "it; leave one out");
    }
    const Texts& trusted = plan.model.trust_sha256;
    for (size_t i = 0; i < trusted.size(); ++i) {
        if (trusted[i].size() == 64 && trusted[i].find_first_not_of("0123456789abcdef") == std::string::npos) continue;
        findings.add("model.trust_sha256[" + std::to_string(i) + ']',
                     "model.trust_sha256 holds 64 lower-case hexadecimal digits a file (got '" + trusted[i] +
                         "'); sha256sum FILE prints them");
    }
    if (plan.model.is_target_mean() && plan.loss && !plan.loss->is_over_classes()) {
        findings.add(
            "model.loss_reduction",
            "model.loss_reduction = \"target_mean\" counts the targets of a [loss] of kind cross_entropy or nll (got " +
                loss_text(plan) + "); take \"mean\"");
    }
    if (!plan.loss) return;
    const std::string& kind = plan.loss->kind;
    if (plan.loss->label_smoothing != 0 && kind != "cross_entropy") {
        findings.add("loss.label_smoothing", "loss.label_smoothing is for cross_entropy (got kind '" + kind + "')");
    }
    if (plan.loss->ignore_index != LossPlan{}.ignore_index && !plan.loss->is_over_classes()) {
        findings.add("loss.ignore_index", "loss.ignore_index is for cross_entropy and nll (got kind '" + kind + "')");
    }
    if (plan.loss->class_dim == 0) {
        findings.add("loss.class_dim", "loss.class_dim is 1 or -1 (got 0): dimension 0 counts samples");
    } else if (plan.loss->class_dim != LossPlan{}.class_dim && !plan.loss->is_over_classes()) {
        findings.add("loss.class_dim", "loss.class_dim is for cross_entropy and nll (got kind '" + kind + "')");
    }
}

void check_init(const Plan& plan, Findings& findings) {
    for (size_t i = 0; i < plan.model.init.size(); ++i) {
        const InitRule& rule = plan.model.init[i];
        const std::string section = "model.init[" + std::to_string(i) + ']';
        if (rule.match.empty()) {
            findings.add(section + ".match", section + ".match is empty; name parameters, or \"*\" for all");
        }
        const auto only_for = [&](const char* key, const char* kind) {
            if (rule.kind == kind || !plan.positions.contains(section + '.' + key)) return;
            findings.add(section + '.' + key, section + '.' + key + " is for kind = \"" + kind + "\" (got " +
                                                  toml_quoted(rule.kind) + "); leave it out");
        };
        only_for("mean", "normal");
        only_for("std", "normal");
        only_for("low", "uniform");
        only_for("high", "uniform");
        if (rule.low >= rule.high) {
            findings.add(section + ".high", section + ".high must be above low (got " + toml_text(rule.high) + " and " +
                                                toml_text(rule.low) + ')');
        }
    }
}

void check_split(const Plan& plan, Findings& findings) {
    const PipelinePlan& pipeline = plan.pipeline;
    if (pipeline.is_by_hand()) return;  // plan/stage_rules
    const bool manual = pipeline.split_method == "MANUAL";
    if (!pipeline.split_points.empty() && !manual) {
        findings.add("pipeline.split_points", "pipeline.split_points need split_method = \"MANUAL\" (got " +
                                                  toml_quoted(pipeline.split_method) + ')');
    }
    if (pipeline.uniform_split_ops && pipeline.split_method != "UNIFORM") {
        findings.add("pipeline.uniform_split_ops", "pipeline.uniform_split_ops needs split_method = \"UNIFORM\" (got " +
                                                       toml_quoted(pipeline.split_method) + ')');
    }
    check_unique(pipeline.split_points, "pipeline.split_points", findings);
}

/// What only AUTO or interleaved schedules look at, and what AUTO chooses itself.
void check_search(const Plan& plan, Findings& findings) {
    const PipelinePlan& pipeline = plan.pipeline;
    if (pipeline.schedule_type == "AUTO") {
        if (pipeline.interleave_group_size) {
            findings.add("pipeline.interleave_group_size",
                         "pipeline.interleave_group_size is for interleaved schedules, AUTO orders microbatches itself "
                         "(got " +
                             std::to_string(*pipeline.interleave_group_size) + "); leave it out");
        }
        return;
    }
    const Texts interleaved = {"INTERLEAVED_1F1B", "INTERLEAVED_ZERO_BUBBLE"};
    if (pipeline.interleave_group_size && std::ranges::find(interleaved, pipeline.schedule_type) == interleaved.end()) {
        findings.add("pipeline.interleave_group_size",
                     "pipeline.interleave_group_size is for interleaved schedules (got " +
                         toml_quoted(pipeline.schedule_type) + "); leave it out");
    }
    const auto for_auto = [&](const std::string& key, bool is_set) {
        if (!is_set) return;
        findings.add(key, key + " needs schedule_type = \"AUTO\" (got " + toml_quoted(pipeline.schedule_type) + ')');
    };
    const SearchPlan usual;
    for_auto("pipeline.search.moves", pipeline.search.moves != usual.moves);
    for_auto("pipeline.search.seed", pipeline.search.seed != usual.seed);
    for_auto("pipeline.search.objective", pipeline.search.objective != usual.objective);
    if (pipeline.choose_virtual_chunks) {
        findings.add("pipeline.virtual_chunks",
                     "pipeline.virtual_chunks = \"auto\" needs schedule_type = \"AUTO\" (got " +
                         toml_quoted(pipeline.schedule_type) + "); name a number");
    }
}

void check_schedule(const Plan& plan, Findings& findings) {
    const PipelinePlan& pipeline = plan.pipeline;
    const bool custom = pipeline.schedule_type == "CUSTOM";
    if (custom && pipeline.schedule_file.empty()) {
        findings.add("pipeline.schedule_type",
                     "CUSTOM needs pipeline.schedule_file, a CSV; vpp schedule show --csv writes one");
    }
    if (!custom && !pipeline.schedule_file.empty()) {
        findings.add("pipeline.schedule_file", "pipeline.schedule_file needs schedule_type = \"CUSTOM\" (got " +
                                                   toml_quoted(pipeline.schedule_type) + ')');
    }
    check_search(plan, findings);
}

void check_recompute(const Plan& plan, Findings& findings) {
    const RecomputePlan& recompute = plan.pipeline.recompute;
    const std::string section = "pipeline.recompute.", got = " (got " + toml_quoted(recompute.what) + ')';
    const bool listed = recompute.what == "modules";
    if (listed && recompute.modules.empty()) {
        findings.add(section + "what", section + "what = \"modules\" needs " + section + "modules");
    }
    if (!listed && !recompute.modules.empty()) {
        findings.add(section + "modules", section + "modules needs what = \"modules\"" + got);
    }
    if (recompute.every != 1 && recompute.what != "units") {
        findings.add(section + "every", section + "every needs what = \"units\"" + got);
    }
    if (recompute.except_last && recompute.what == "none") {
        findings.add(section + "except_last", section + "except_last needs something to be recomputed" + got);
    }
    check_unique(recompute.modules, section + "modules", findings);
}

/// Whether a checkpoint before the last one lies at an evaluation. The last step has both: where there are no others of
/// one of them, nothing is missed.
bool saves_meet_evaluations(int64_t save, int64_t evaluate, int64_t steps) {
    if (save > steps || evaluate > steps) return true;
    return save / std::gcd(save, evaluate) <= steps / evaluate;
}

void check_keep_best(const Plan& plan, Findings& findings) {
    const TrainPlan& train = plan.train;
    if (plan.checkpoint.keep_best == 0) return;
    if (train.eval_every == 0) {
        findings.add("checkpoint.keep_best",
                     "checkpoint.keep_best goes by the validation loss; set train.eval_every, or leave it out");
    }
    const int64_t save = plan.checkpoint.every, evaluate = train.eval_every;
    if (save == 0 && evaluate > 0 && plan.checkpoint.every_minutes > 0) {
        findings.add("checkpoint.keep_best",
                     "checkpoint.keep_best goes by the validation loss, and saves by time meet evaluations by chance "
                     "only; set checkpoint.every to a multiple of train.eval_every, such as " +
                         std::to_string(evaluate));
    }
    if (save == 0 || evaluate == 0 || save % evaluate == 0 || evaluate % save == 0) return;
    // With epochs the last step is not known here.
    if (!train.steps || saves_meet_evaluations(save, evaluate, *train.steps)) return;
    const int64_t above = save / evaluate + 1, most = *train.steps / evaluate;
    findings.add("checkpoint.keep_best",
                 "checkpoint.keep_best goes by the validation loss, and all checkpoints but the last would lie beside "
                 "evaluations (got checkpoint.every " +
                     std::to_string(save) + " and train.eval_every " + std::to_string(evaluate) +
                     "); make checkpoint.every a multiple of train.eval_every, such as " +
                     std::to_string(std::min(above, most) * evaluate));
}

void check_train(const Plan& plan, Findings& findings) {
    const TrainPlan& train = plan.train;
    if (train.steps && train.epochs) {
        findings.add("train.epochs", "train.steps and train.epochs exclude each other (got " +
                                         std::to_string(*train.steps) + " and " + std::to_string(*train.epochs) +
                                         "); leave one out");
    }
    if (train.steps && plan.lr_schedule.warmup_steps > *train.steps) {
        findings.add("lr_schedule.warmup_steps", "the warm-up is longer than the training (got warmup_steps " +
                                                     std::to_string(plan.lr_schedule.warmup_steps) + ", train.steps " +
                                                     std::to_string(*train.steps) +
                                                     "); lower it, or for a short trial "
                                                     "--set lr_schedule.warmup_steps=0");
    }
    const bool is_off_by_default = train.on_spike == "off" && !plan.positions.contains("train.on_spike");
    if (train.spike_sigmas != TrainPlan{}.spike_sigmas && is_off_by_default) {
        findings.add("train.spike_sigmas",
                     "train.spike_sigmas needs train.on_spike = \"warn\", \"skip\" or \"stop\" (got " +
                         toml_quoted(train.on_spike) + ')');
    }
    const auto for_fp16 = [&](const char* key, bool is_set) {
        if (!is_set || train.precision == "fp16") return;
        findings.add(key, std::string(key) + " needs train.precision = \"fp16\" (got " + toml_quoted(train.precision) +
                              "); other precisions need no loss scale");
    };
    for_fp16("train.loss_scale", train.loss_scale != TrainPlan{}.loss_scale);
    for_fp16("train.loss_scale_every", train.loss_scale_every != TrainPlan{}.loss_scale_every);
    check_keep_best(plan, findings);
}

/// What each number beside the loss of an evaluation needs of that loss.
void check_metrics(const Plan& plan, Findings& findings) {
    const Texts known = {"accuracy", "perplexity"};
    const Texts& metrics = plan.eval.metrics;
    check_unique(metrics, "eval.metrics", findings);
    const std::string loss = loss_text(plan);
    const bool of_classes = plan.loss && plan.loss->is_over_classes();
    for (size_t i = 0; i < metrics.size(); ++i) {
        const std::string key = "eval.metrics[" + std::to_string(i) + ']';
        if (std::ranges::find(known, metrics[i]) == known.end()) {
            findings.add(key, "eval.metrics does not know '" + metrics[i] + "' (expected accuracy or perplexity)" +
                                  did_you_mean(metrics[i], known));
        } else if (metrics[i] == "accuracy" && !of_classes) {
            findings.add(key, "accuracy needs [loss] of kind cross_entropy or nll, whose targets are classes (got " +
                                  loss + ')');
        } else if (metrics[i] == "perplexity" && plan.loss && !of_classes) {
            findings.add(key, "perplexity is e to the power of a cross entropy (got " + loss + ')');
        } else if (metrics[i] == "perplexity" && plan.loss && plan.loss->label_smoothing != 0) {
            findings.add(key, "perplexity needs a cross entropy without loss.label_smoothing (got " +
                                  toml_text(plan.loss->label_smoothing) + "); leave one of them out");
        } else if (metrics[i] == "perplexity" && plan.model.loss_reduction == "sum") {
            findings.add(key,
                         "perplexity needs a mean, model.loss_reduction = \"mean\" or \"target_mean\" (got "
                         "\"sum\")");
        }
    }
}

void check_stages(const Plan& plan, Findings& findings) {
    const auto pp = plan.mesh.pp;
    const auto num_stages = plan.pipeline.num_stages;
    if (pp && num_stages && *pp != *num_stages) {
        findings.add("pipeline.num_stages", "pipeline.num_stages and mesh.pp are the same number (got " +
                                                std::to_string(*num_stages) + " and " + std::to_string(*pp) +
                                                "); leave one out");
    }
}

void check_all(const Plan& plan, Findings& findings) {
    check_model(plan, findings);
    check_init(plan, findings);
    check_data(plan, findings);
    check_validation(plan, findings);
    check_transforms(plan, findings);
    check_metrics(plan, findings);
    check_stages(plan, findings);
    check_split(plan, findings);
    check_stage_tables(plan, findings);
    check_schedule(plan, findings);
    check_recompute(plan, findings);
    check_optimizer(plan, findings);
    check_lr_schedule(plan, findings);
    check_train(plan, findings);
}

/// Where the number of parts comes from the number of ranks alone, which is seldom what the points are for.
void name_missing_ranks(const Plan& plan, int64_t count, Findings& findings) {
    const int64_t chunks = plan.pipeline.choose_virtual_chunks ? 1 : plan.pipeline.virtual_chunks;
    const int64_t ranks = (count + 1) % chunks == 0 ? (count + 1) / chunks
                          : count % chunks == 0     ? count / chunks
                                                    : count + 1;
    findings.add("pipeline.split_points",
                 "split_method = \"MANUAL\" needs pipeline.num_stages, which is missing (got " +
                     counted_text(count, "split point") + ", and pp " + std::to_string(*plan.mesh.pp) +
                     " by the number of ranks); try pipeline.num_stages = " + std::to_string(ranks));
}

/// MANUAL: P ends of parts or P v ends of stages; the last one may be left out.
void check_split_points(const Plan& plan, bool names_pp, Findings& findings) {
    const PipelinePlan& pipeline = plan.pipeline;
    if (pipeline.split_method != "MANUAL" || pipeline.is_by_hand()) return;
    const auto count = static_cast<int64_t>(pipeline.split_points.size());
    const int64_t parts = *plan.mesh.pp;
    const int64_t stages = parts * pipeline.virtual_chunks;
    if (count == parts || count == parts - 1) return;
    if (!pipeline.choose_virtual_chunks && (count == stages || count == stages - 1)) return;
    if (!names_pp && count > 0) return name_missing_ranks(plan, count, findings);
    const std::string all = parts == stages ? "" : " or " + std::to_string(stages) + " (pp x virtual_chunks)";
    findings.add("pipeline.split_points",
                 "split_method = \"MANUAL\" needs another number of pipeline.split_points (got " +
                     std::to_string(count) + ", expected " + std::to_string(parts) + " (pp)" + all +
                     "; the last one may be left out)");
}

void check_batch(const Plan& plan, Findings& findings) {
    const int64_t batch = *plan.train.global_batch_size;
    const int64_t part = parts_of_batch(plan);
    if (batch % part == 0) return;
    const int64_t below = batch / part * part;
    const bool accumulates = plan.train.accumulate > 1;
    findings.add("train.global_batch_size",
                 std::string("train.global_batch_size must be a multiple of num_microbatches x ") +
                     (accumulates ? "accumulate x " : "") + "dp (got " + std::to_string(batch) + ", num_microbatches " +
                     std::to_string(*plan.pipeline.num_microbatches) +
                     (accumulates ? " x accumulate " + std::to_string(plan.train.accumulate) : "") + " x dp " +
                     std::to_string(*plan.mesh.dp) + " = " + std::to_string(part) + "); try " +
                     (below > 0 ? std::to_string(below) + " or " : "") + std::to_string(below + part));
}

/// The ranks on the PP axis that the plan itself asks for.
std::optional<int> pp_of_keys(const Plan& plan) {
    if (plan.mesh.pp) return plan.mesh.pp;
    if (plan.pipeline.num_stages) return plan.pipeline.num_stages;
    const int tables = static_cast<int>(plan.pipeline.stages.size());
    const int chunks = plan.pipeline.virtual_chunks;
    return tables > 0 && tables % chunks == 0 ? std::optional<int>(tables / chunks) : std::nullopt;
}

void fill_in(Plan& plan, int world) {
    MeshPlan& mesh = plan.mesh;
    mesh.tp = mesh.tp.value_or(1);
    if (!mesh.dp) {
        const std::optional<int> pp = pp_of_keys(plan);
        mesh.dp = pp ? std::max(1, world / (*pp * *mesh.tp)) : 1;
    }
    if (!mesh.pp) mesh.pp = pp_of_keys(plan).value_or(std::max(1, world / (*mesh.dp * *mesh.tp)));
    if (!plan.pipeline.num_stages) plan.pipeline.num_stages = mesh.pp;
    if (!plan.pipeline.num_microbatches) plan.pipeline.num_microbatches = 2 * *mesh.pp;
    if (!plan.train.global_batch_size) {
        plan.train.global_batch_size = parts_of_batch(plan);
    }
    if (plan.run.dir.empty()) plan.run.dir = "runs/" + plan.name;
}

int64_t num_ranks_of(const MeshPlan& mesh) {
    return int64_t{*mesh.pp} * *mesh.dp * *mesh.tp;
}

/// `names_pp`: whether the plan had the ranks on the PP axis before it was filled in.
void check_filled_in(const Plan& plan, bool names_pp, Findings& findings) {
    check_all(plan, findings);
    check_split_points(plan, names_pp, findings);
    check_stage_count(plan, findings);
    check_batch(plan, findings);
}

bool fits(Plan plan, int world) {
    fill_in(plan, world);
    Findings findings(plan);
    check_filled_in(plan, /*names_pp=*/true, findings);
    return findings.empty() && num_ranks_of(plan.mesh) == world;
}

/// ", or set KEY to VALUE" for each key that alone makes the plan, as it was written, fit the ranks.
std::string mesh_remedies(const Plan& written, int world) {
    std::string text;
    const int tp = written.mesh.tp.value_or(1);
    Plan changed = written;
    const std::string key = written.mesh.pp ? "mesh.pp" : "pipeline.num_stages";
    std::optional<int>& pp = written.mesh.pp ? changed.mesh.pp : changed.pipeline.num_stages;
    pp = std::max(1, world / (written.mesh.dp.value_or(1) * tp));
    if (fits(changed, world)) text += ", or set " + key + " to " + std::to_string(*pp);
    if (!written.mesh.dp) return text;
    changed = written;
    for (int dp = pp_of_keys(written) ? world : *written.mesh.dp; dp >= 1; --dp) {
        changed.mesh.dp = dp;
        if (world % dp == 0 && fits(changed, world)) return text + ", or set mesh.dp to " + std::to_string(dp);
    }
    return text;
}

void check_world_size(const Plan& plan, const Plan& written, int world) {
    const MeshPlan& mesh = plan.mesh;
    const int64_t num_ranks = num_ranks_of(mesh);
    if (num_ranks == world) return;
    const std::string key = written.mesh.pp ? "mesh.pp" : "pipeline.num_stages";
    throw Error(ErrorKind::Mesh,
                "the mesh does not fit the number of ranks (got " + std::to_string(world) +
                    (world == 1 ? " rank" : " ranks") + ", expected pp " + std::to_string(*mesh.pp) + " x dp " +
                    std::to_string(*mesh.dp) + " x tp " + std::to_string(*mesh.tp) + " = " + std::to_string(num_ranks) +
                    "); start it with: vpp run -n " + std::to_string(num_ranks) + " ... (or mpirun -np " +
                    std::to_string(num_ranks) + " vpp ...)" + mesh_remedies(written, world),
                plan.where(key));
}

}  // namespace

void check_plan(const Plan& plan) {
    Findings findings(plan);
    check_all(plan, findings);
    findings.raise();
}

Plan resolve_plan(Plan plan, int world) {
    check(world >= 1, "a world has at least one rank");
    const Plan written = plan;
    fill_in(plan, world);
    Findings findings(plan);
    check_filled_in(plan, pp_of_keys(written).has_value(), findings);
    findings.raise();
    check_world_size(plan, written, world);
    plan.resolved_text = plan_text(plan);
    return plan;
}

int natural_world(const Plan& plan) {
    const int64_t pp = pp_of_keys(plan).value_or(1), dp = plan.mesh.dp.value_or(1), tp = plan.mesh.tp.value_or(1);
    const int64_t num_ranks = pp * dp * tp;
    if (num_ranks <= kMostRanks) return static_cast<int>(num_ranks);
    throw Error(ErrorKind::Plan,
                "the mesh asks for too many ranks (got pp " + std::to_string(pp) + " x dp " + std::to_string(dp) +
                    " x tp " + std::to_string(tp) + " = " + std::to_string(num_ranks) + ", expected at most " +
                    std::to_string(kMostRanks) + "); lower one of them",
                plan.where("mesh.dp"));
}

}  // namespace vpp
