#include "plan/rules.hpp"

#include <gtest/gtest.h>

#include "unit/plan/resolved_plans.hpp"

namespace vpp {
namespace {

using test::Arguments;
using test::built_names;
using test::error_at;
using test::error_of;
using test::holds;
using test::kShortPlan;
using test::parse_with;
using test::problem;
using test::resolve;

TEST(Rules, AShortPlanGetsItsDefaults) {
    const Plan plan = resolve({}, 4);
    EXPECT_EQ(plan.mesh.pp, 4);
    EXPECT_EQ(plan.mesh.dp, 1);
    EXPECT_EQ(plan.mesh.tp, 1);
    EXPECT_EQ(plan.pipeline.num_stages, 4);
    EXPECT_EQ(plan.pipeline.num_microbatches, 8);
    EXPECT_EQ(plan.train.global_batch_size, 8);
    EXPECT_EQ(plan.run.dir, "runs/p");
    EXPECT_TRUE(holds(plan.resolved_text, "pp = 4\n"));
    EXPECT_TRUE(holds(plan.resolved_text, "dir = \"runs/p\"\n"));
}

TEST(Rules, PpAndNumStagesAreOneNumber) {
    EXPECT_EQ(resolve({"pipeline.num_stages=2"}, 2).mesh.pp, 2);
    EXPECT_EQ(resolve({"mesh.pp=2"}, 2).pipeline.num_stages, 2);
    EXPECT_EQ(resolve({"mesh.pp=2", "pipeline.num_stages=2"}, 2).mesh.pp, 2);
    const Error error = error_at({"mesh.pp=2", "pipeline.num_stages=4"}, 4);
    EXPECT_EQ(error.kind(), ErrorKind::Plan);
    EXPECT_TRUE(holds(error.what(), "the same number (got 4 and 2)"));
}

TEST(Rules, AWorldOfAnotherSizeIsAMeshError) {
    const Error error = error_at({"pipeline.num_stages=4"}, 3);
    EXPECT_EQ(error.kind(), ErrorKind::Mesh);
    EXPECT_TRUE(holds(error.what(), "got 3 ranks, expected pp 4 x dp 1 x tp 1 = 4"));
    EXPECT_TRUE(holds(error.what(),
                      "start it with: vpp run -n 4 ... (or mpirun -np 4 vpp ...), or set pipeline.num_stages to 3"));
    EXPECT_TRUE(holds(problem({"mesh.pp=2"}, 1), "set mesh.pp to 1"));
    EXPECT_EQ(error_at({"mesh.threads=1", "pipeline.num_stages=4"}, 3).problems().at(0).position->text,
              "pipeline.num_stages=4");
    // With another problem beside it the plan comes first.
    EXPECT_EQ(error_at({"pipeline.num_stages=4", "train.global_batch_size=7"}, 3).kind(), ErrorKind::Plan);
}

TEST(Rules, OnlyNumbersThatFitTheRanksAreAdvised) {
    const auto advice = [](const Arguments& arguments, int world) {
        const std::string text = error_at(arguments, world).problems().at(0).message;
        return text.substr(text.find("vpp ...)") + 8);
    };
    const Arguments square = {"pipeline.num_stages=2", "mesh.dp=2"};
    EXPECT_EQ(advice(square, 5), "") << "5 = 2 x dp has no whole dp";
    EXPECT_EQ(advice(square, 8), ", or set pipeline.num_stages to 4, or set mesh.dp to 4");
    EXPECT_EQ(advice(square, 2), ", or set pipeline.num_stages to 1, or set mesh.dp to 1");
    EXPECT_EQ(advice({"mesh.dp=2"}, 5), ", or set mesh.dp to 1");
    EXPECT_EQ(advice({"mesh.dp=4"}, 9), ", or set mesh.dp to 3");
    EXPECT_EQ(advice({"mesh.pp=4"}, 6), ", or set mesh.pp to 6") << "and dp goes by it";
    // Another rule has a say too.
    const Arguments cut = {"pipeline.num_stages=2", "pipeline.split_method=MANUAL", "pipeline.split_points=['a']"};
    EXPECT_EQ(advice(cut, 3), "");
    EXPECT_EQ(advice({"mesh.pp=2", "mesh.dp=2", "pipeline.num_microbatches=4", "train.global_batch_size=8"}, 6),
              ", or set mesh.pp to 3")
        << "a batch of 8 has no 4 x dp 3 parts";
}

TEST(Rules, NaturalWorldIsWhatThePlanNames) {
    EXPECT_EQ(natural_world(parse_with({})), 1);
    EXPECT_EQ(natural_world(parse_with({"pipeline.num_stages=4"})), 4);
    EXPECT_EQ(natural_world(parse_with({"mesh.pp=2"})), 2);
    EXPECT_EQ(natural_world(parse_with({"mesh.pp=16", "mesh.dp=65536"})), kMostRanks);
    for (const char* stages : {"pipeline.num_stages=17", "mesh.pp=65536"}) {
        const Error error = error_of([&] { natural_world(parse_with({stages, "mesh.dp=65536"})); });
        EXPECT_EQ(error.kind(), ErrorKind::Plan);
        EXPECT_TRUE(holds(error.what(), "the mesh asks for too many ranks (got pp ")) << error.what();
        EXPECT_TRUE(holds(error.what(), "expected at most 1048576); lower one of them")) << error.what();
    }
}

TEST(Rules, BatchesDivide) {
    EXPECT_EQ(resolve({"train.global_batch_size=32", "pipeline.num_microbatches=8"}, 2).train.global_batch_size, 32);
    EXPECT_TRUE(holds(problem({"train.global_batch_size=30", "pipeline.num_microbatches=8"}),
                      "got 30, num_microbatches 8 x dp 1 = 8); try 24 or 32"));
    EXPECT_TRUE(holds(problem({"train.global_batch_size=3"}, 4), "= 8); try 8"));
}

TEST(Rules, EveryPipelineRunOfAStepTakesItsPartOfTheBatch) {
    const Arguments runs{"train.accumulate=3", "pipeline.num_microbatches=8", "mesh.pp=1", "mesh.dp=2"};
    EXPECT_EQ(resolve(runs, 2).train.global_batch_size, 48);
    Arguments uneven = runs;
    uneven.push_back("train.global_batch_size=32");
    EXPECT_TRUE(holds(problem(uneven, 2),
                      "train.global_batch_size must be a multiple of num_microbatches x accumulate x dp (got 32, "
                      "num_microbatches 8 x accumulate 3 x dp 2 = 48); try 48"));
}

TEST(Rules, TheLengthOfStepsIsAskedOfTrainingsAlone) {
    EXPECT_NO_THROW(resolve({"lr_schedule.kind=step"}, 1));
}

TEST(Rules, NumbersOfInitBelongToTheirKind) {
    EXPECT_NO_THROW(resolve({"model.init=[{match=['*'], kind='normal', mean=1, std=2}]"}, 1));
    EXPECT_NO_THROW(
        resolve({"model.init=[{match=['*.bias'], kind='zeros'}, {match=['*'], kind='uniform', low=-1}]"}, 1));
    EXPECT_TRUE(holds(problem({"model.init=[{match=['*'], kind='ones', std=2}]"}),
                      "model.init[0].std is for kind = \"normal\" (got \"ones\"); leave it out"));
    EXPECT_TRUE(holds(problem({"model.init=[{match=['*'], kind='normal', high=2}]"}), "is for kind = \"uniform\""));
    EXPECT_TRUE(holds(problem({"model.init=[{match=['*'], kind='uniform', low=2}]"}),
                      "model.init[0].high must be above low (got 1.0 and 2.0)"));
    EXPECT_TRUE(holds(problem({"model.init=[{match=[], kind='ones'}]"}), "match is empty; name parameters"));
    EXPECT_TRUE(holds(problem({"model.init=[{kind='ones'}]"}), "match"));
}

TEST(Rules, FewerMicrobatchesThanStagesAreFine) {
    for (const char* kind : {"GPIPE", "1F1B"}) {
        EXPECT_NO_THROW(resolve({"pipeline.num_microbatches=1", std::string("pipeline.schedule_type=") + kind}, 4));
    }
    for (const int count : {1, 3, 5, 9}) {
        EXPECT_NO_THROW(resolve({"pipeline.schedule_type=INTERLEAVED_1F1B", "pipeline.virtual_chunks=2",
                                 "pipeline.num_microbatches=" + std::to_string(count)},
                                4));
    }
}

TEST(Rules, AliasesAreNormal) {
    EXPECT_EQ(resolve({"pipeline.schedule_type=SIMPLE_1F1B"}, 1).resolved_text,
              resolve({"pipeline.schedule_type=1F1B"}, 1).resolved_text);
}

TEST(Rules, ACustomScheduleNeedsItsFile) {
    EXPECT_NO_THROW(resolve({"pipeline.schedule_type=CUSTOM", "pipeline.schedule_file=s.csv"}, 2));
    EXPECT_NO_THROW(resolve({"pipeline.schedule_file=\"\""}, 2));
    EXPECT_TRUE(holds(problem({"pipeline.schedule_type=CUSTOM"}, 2), "CUSTOM needs pipeline.schedule_file"));
    EXPECT_TRUE(holds(problem({"pipeline.schedule_file=s.csv"}, 2), "needs schedule_type = \"CUSTOM\" (got \"1F1B\")"));
}

TEST(Rules, WhatIsForAutoNeedsAuto) {
    const std::string automatic = "pipeline.schedule_type=AUTO";
    for (const char* key : {"pipeline.search.moves=5", "pipeline.search.seed=1", "pipeline.search.objective=span",
                            "pipeline.virtual_chunks=auto"}) {
        const std::string name = std::string(key).substr(0, std::string(key).find('='));
        const Error error = error_at({key}, 2);
        EXPECT_EQ(error.kind(), ErrorKind::Plan) << key;
        EXPECT_TRUE(holds(error.what(), "needs schedule_type = \"AUTO\" (got \"1F1B\")")) << error.what();
        EXPECT_TRUE(holds(error.what(), "--set:1:")) << "it has a position";
        const Plan plan = resolve({automatic, key}, 2);
        EXPECT_TRUE(holds(plan.resolved_text, std::string(name).substr(name.rfind('.') + 1) + " = ")) << name;
    }
    EXPECT_NO_THROW(resolve({"pipeline.memory_limit=2", "pipeline.cost_file=c.json"}, 2)) << "for all schedules";
    EXPECT_TRUE(holds(problem({automatic, "pipeline.interleave_group_size=2"}, 2), "AUTO orders microbatches itself"));
}

TEST(Rules, GroupsOfMicrobatchesAreForInterleavedSchedules) {
    const std::string group = "pipeline.interleave_group_size=2", chunks = "pipeline.virtual_chunks=2";
    for (const char* schedule : {"INTERLEAVED_1F1B", "INTERLEAVED_ZERO_BUBBLE"}) {
        EXPECT_NO_THROW(resolve({std::string("pipeline.schedule_type=") + schedule, chunks, group}, 2)) << schedule;
    }
    EXPECT_TRUE(holds(problem({"pipeline.schedule_type=LOOPED_BFS", chunks, group}, 2),
                      "--set:1:32: pipeline.interleave_group_size is for interleaved schedules (got \"LOOPED_BFS\"); "
                      "leave it out"));
    EXPECT_TRUE(holds(problem({group}, 2), "for interleaved schedules (got \"1F1B\")"));
}

TEST(Rules, TheResolvedTextHasWhatAScheduleIsMadeFrom) {
    const Arguments arguments{"pipeline.schedule_type=AUTO",   "pipeline.virtual_chunks=auto",
                              "pipeline.memory_limit=512MiB",  "pipeline.cost_file=c.json",
                              "pipeline.search.moves=7",       "pipeline.search.seed=3",
                              "pipeline.search.objective=span"};
    const std::string text = resolve(arguments, 2).resolved_text;
    for (const char* line : {"virtual_chunks = \"auto\"\n", "memory_limit = \"512MiB\"\n", "cost_file = \"c.json\"\n",
                             "[pipeline.search]\nmoves = 7\nseed = 3\nobjective = \"span\"\n"}) {
        EXPECT_TRUE(holds(text, line)) << text;
    }
    EXPECT_EQ(resolve({}, 2, text).resolved_text, text);
}

TEST(Rules, SplitPointsAreCounted) {
    const std::string manual = "pipeline.split_method=MANUAL";
    const auto points = [](int count) {
        std::string list;
        for (int i = 0; i < count; ++i) list += (i ? ", \"b" : "\"b") + std::to_string(i) + '"';
        return "pipeline.split_points=[" + list + ']';
    };
    const std::string chunks = "pipeline.virtual_chunks=2", interleaved = "pipeline.schedule_type=INTERLEAVED_1F1B";
    const std::string four = "pipeline.num_stages=4";
    for (const int count : {3, 4, 7, 8}) EXPECT_NO_THROW(resolve({manual, chunks, interleaved, points(count)}, 4));
    for (const int count : {0, 1, 2, 5, 6, 9}) {
        EXPECT_TRUE(holds(problem({manual, chunks, interleaved, four, points(count)}, 4),
                          "expected 4 (pp) or 8 (pp x virtual_chunks); the last one"))
            << count;
    }
    const std::string automatic = "pipeline.schedule_type=AUTO", any = "pipeline.virtual_chunks=auto";
    for (const int count : {3, 4}) EXPECT_NO_THROW(resolve({manual, automatic, any, points(count)}, 4));
    EXPECT_TRUE(holds(problem({manual, automatic, any, four, points(7)}, 4), "got 7, expected 4 (pp);"));
    EXPECT_EQ(error_at({manual, points(3)}, 1).problems().at(0).message,
              "split_method = \"MANUAL\" needs pipeline.num_stages, which is missing (got 3 split points, and pp 1 by "
              "the number of ranks); try pipeline.num_stages = 4");
    for (const int count : {7, 8}) {
        EXPECT_TRUE(holds(problem({manual, chunks, interleaved, points(count)}, 2), "try pipeline.num_stages = 4"));
    }
    EXPECT_TRUE(holds(problem({manual, "pipeline.virtual_chunks=4", interleaved, points(5)}, 2), "num_stages = 6"));
    EXPECT_TRUE(holds(problem({manual, automatic, any, points(7)}, 4), "try pipeline.num_stages = 8"));
    for (const char* named : {"pipeline.num_stages=1", "mesh.pp=1"}) {
        EXPECT_TRUE(holds(problem({manual, named, points(3)}, 1), "got 3, expected 1 (pp);")) << named;
    }
    EXPECT_NO_THROW(resolve({manual}, 1));
    EXPECT_TRUE(holds(problem({manual}, 2), "got 0, expected 2 (pp);"));
    EXPECT_TRUE(holds(problem({points(1)}), "need split_method = \"MANUAL\" (got \"FLOPS\")"));
    EXPECT_TRUE(holds(problem({manual, "pipeline.split_points=[\"a\", \"a\"]"}, 2), "names 'a' twice"));
    EXPECT_TRUE(holds(problem({"pipeline.uniform_split_ops=true"}), "needs split_method = \"UNIFORM\""));
}

TEST(Rules, RecomputeKeysFitEachOther) {
    const std::string at = "pipeline.recompute.";
    const std::string list = at + "modules=[\"a\"]";
    EXPECT_NO_THROW(resolve({at + "what=units", at + "every=2", at + "except_last=true"}, 1));
    EXPECT_NO_THROW(resolve({at + "what=modules", list}, 1));
    EXPECT_TRUE(holds(problem({at + "what=modules"}),
                      "pipeline.recompute.what = \"modules\" needs pipeline.recompute.modules"));
    EXPECT_TRUE(holds(problem({list}), "modules needs what = \"modules\" (got \"none\")"));
    EXPECT_TRUE(holds(problem({at + "what=stage", at + "every=2"}), "every needs what = \"units\" (got \"stage\")"));
    EXPECT_TRUE(holds(problem({at + "except_last=true"}), "needs something to be recomputed"));
    EXPECT_TRUE(holds(problem({at + "what=modules", at + "modules=[\"a\", \"a\"]"}), "names 'a' twice"));
}

TEST(Rules, StepsAndEpochs) {
    EXPECT_NO_THROW(resolve({}, 1));
    EXPECT_NO_THROW(resolve({"train.epochs=2"}, 1));
    EXPECT_TRUE(holds(problem({"train.epochs=2", "train.steps=5"}), "exclude each other (got 5 and 2)"));
    EXPECT_TRUE(holds(problem({"train.steps=5", "lr_schedule.warmup_steps=6"}),
                      "the warm-up is longer than the training (got warmup_steps 6, train.steps 5); lower it, or for a "
                      "short trial --set lr_schedule.warmup_steps=0"));
    EXPECT_NO_THROW(resolve({"train.steps=5", "lr_schedule.warmup_steps=5"}, 1));
}

TEST(Rules, LossScalesAreForFp16) {
    EXPECT_NO_THROW(resolve({"train.precision=fp16", "train.loss_scale=8", "train.loss_scale_every=2"}, 1));
    EXPECT_TRUE(holds(problem({"train.precision=bf16", "train.loss_scale=8"}),
                      "train.loss_scale needs train.precision = \"fp16\" (got \"bf16\")"));
    EXPECT_TRUE(holds(problem({"train.loss_scale_every=8"}), "train.loss_scale_every needs"));
    for (const char* scale : {"train.loss_scale=1e300", "train.loss_scale=1e-60", "train.loss_scale=0"}) {
        EXPECT_TRUE(holds(problem({"train.precision=fp16", scale}), "expected 1e-37 to 3.4e+38)")) << scale;
    }
}

TEST(Rules, DeviationsOfSpikesAreForThoseWhoLookForThem) {
    EXPECT_TRUE(holds(problem({"train.spike_sigmas=4"}),
                      "train.spike_sigmas needs train.on_spike = \"warn\", \"skip\" or \"stop\" (got \"off\")"));
    EXPECT_NO_THROW(resolve({"train.spike_sigmas=6"}, 1)) << "as without it";
    EXPECT_NO_THROW(resolve({"train.spike_sigmas=4", "train.on_spike=off"}, 1)) << "turned off for once";
    for (const char* action : {"warn", "skip", "stop"}) {
        EXPECT_NO_THROW(resolve({std::string("train.on_spike=") + action, "train.spike_sigmas=4"}, 1)) << action;
    }
}

TEST(Rules, TheBestCheckpointsNeedAValidationLoss) {
    EXPECT_TRUE(holds(problem({"checkpoint.keep_best=1"}), "goes by the validation loss; set train.eval_every"));
    EXPECT_NO_THROW(resolve({"checkpoint.keep_best=0"}, 1));
}

TEST(Rules, TheBestCheckpointsAreThoseOfEvaluations) {
    const auto with = [](int save, int evaluate, int keep, int steps = 11) {
        return Arguments{"train.steps=" + std::to_string(steps), "checkpoint.every=" + std::to_string(save),
                         "train.eval_every=" + std::to_string(evaluate), "data.val=['val.bin']",
                         "checkpoint.keep_best=" + std::to_string(keep)};
    };
    EXPECT_TRUE(
        holds(problem(with(4, 3, 1)),
              "checkpoint.keep_best goes by the validation loss, and all checkpoints but the last would lie "
              "beside evaluations (got checkpoint.every 4 and train.eval_every 3); make checkpoint.every a multiple of "
              "train.eval_every, such as 6"));
    EXPECT_TRUE(holds(problem(with(4, 6, 1)), "such as 6"));
    EXPECT_TRUE(holds(problem(with(150, 100, 1, 180)), "such as 100")) << "the next one, 200, is never reached";
    EXPECT_TRUE(holds(problem(with(5, 2, 1, 9)), "such as 6"));
    EXPECT_NO_THROW(resolve(with(150, 100, 1, 149), 1)) << "the last step alone is saved, and has an evaluation";
    EXPECT_NO_THROW(resolve(with(4, 6, 1, 5), 1)) << "the last step alone has an evaluation, and is saved";
    EXPECT_NO_THROW(resolve(with(4, 6, 1, 12), 1)) << "they meet at the end";
    EXPECT_NO_THROW(resolve(with(6, 3, 1), 1));
    EXPECT_NO_THROW(resolve(with(4, 4, 1, 3), 1)) << "a run that is cut short has its last checkpoint";
    EXPECT_NO_THROW(resolve(with(3, 6, 1, 4), 1));
    EXPECT_NO_THROW(resolve(with(3, 6, 1), 1)) << "each evaluation has its checkpoint";
    EXPECT_NO_THROW(resolve(with(0, 3, 1), 1)) << "after the last step there is an evaluation";
    Arguments by_time = with(0, 3, 1);
    by_time.push_back("checkpoint.every_minutes=10");
    EXPECT_TRUE(holds(problem(by_time),
                      "saves by time meet evaluations by chance only; set checkpoint.every to a "
                      "multiple of train.eval_every, such as 3"));
    EXPECT_NO_THROW(resolve(with(4, 3, 0), 1));
}

TEST(Rules, TrustedFilesAreNamedByTheirDigest) {
    const std::string digest(64, 'a');
    EXPECT_NO_THROW(resolve({"model.trust_sha256=['" + digest + "']"}, 1));
    EXPECT_TRUE(holds(problem({"model.trust_sha256=['" + digest.substr(1) + "']"}), "sha256sum FILE prints them"));
    EXPECT_TRUE(
        holds(problem({"model.trust_sha256=['" + digest.substr(1) + "G']"}), "hexadecimal digits a file (got 'aaa"));
}

TEST(Rules, LossAndLossOutputExcludeEachOther) {
    EXPECT_TRUE(holds(problem({"loss.kind=mse", "loss.target=y", "model.loss_output=0"}), "exclude each other"));
    EXPECT_NO_THROW(resolve({"loss.kind=mse", "loss.target=y"}, 1));
    EXPECT_TRUE(holds(problem({"loss.kind=mse", "loss.target=y", "loss.label_smoothing=0.1"}), "for cross_entropy"));
    EXPECT_TRUE(holds(problem({"loss.kind=mse", "loss.target=y", "loss.ignore_index=1"}), "cross_entropy and nll"));
    EXPECT_TRUE(holds(problem({"loss.kind=mse", "loss.target=y", "loss.class_dim=-1"}),
                      "loss.class_dim is for cross_entropy and nll (got kind 'mse')"));
    EXPECT_TRUE(holds(problem({"loss.kind=nll", "loss.target=y", "loss.class_dim=0"}),
                      "loss.class_dim is 1 or -1 (got 0): dimension 0 counts samples"));
    EXPECT_NO_THROW(resolve({"loss.kind=nll", "loss.target=y", "loss.class_dim=-1"}, 1));
    EXPECT_NO_THROW(resolve({"model.inputs=[\"a\", \"a\"]"}, 1)) << "two arguments of one field";
}

TEST(Rules, AMeanOverTargetsNeedsALossOfClasses) {
    const std::string needs =
        "model.loss_reduction = \"target_mean\" counts the targets of a [loss] of kind cross_entropy or nll (got ";
    EXPECT_TRUE(holds(problem({"model.loss_reduction=target_mean", "loss.kind=l1", "loss.target=y"}),
                      needs + "kind \"l1\"); take \"mean\""));
    EXPECT_NO_THROW(resolve({"model.loss_reduction=target_mean"}, 1)) << "forward's own may be one";
    EXPECT_NO_THROW(resolve(
        {"model.loss_reduction=target_mean", "loss.kind=nll", "loss.target=y", "eval.metrics=['perplexity']"}, 1));
}

TEST(Rules, MetricsFitTheLoss) {
    const auto problem_with = [](const std::string& kind, const std::string& metrics) {
        return problem({"loss.kind=" + kind, "loss.target=y", "eval.metrics=" + metrics});
    };
    EXPECT_NO_THROW(resolve({"loss.kind=nll", "loss.target=y", "eval.metrics=['accuracy', 'perplexity']"}, 1));
    EXPECT_NO_THROW(resolve({"eval.metrics=['perplexity']"}, 1)) << "a model that gives its loss may give that one";
    EXPECT_TRUE(holds(problem({"eval.metrics=['accuracy']"}),
                      "accuracy needs [loss] of kind cross_entropy or nll, whose targets are classes (got no [loss])"));
    EXPECT_TRUE(holds(problem_with("mse", "['accuracy']"), "(got kind \"mse\")"));
    EXPECT_TRUE(
        holds(problem_with("mse", "['perplexity']"), "perplexity is e to the power of a cross entropy (got kind"));
    EXPECT_TRUE(holds(problem({"model.loss_reduction=sum", "eval.metrics=['perplexity']"}),
                      "perplexity needs a mean, model.loss_reduction = \"mean\" or \"target_mean\" (got \"sum\")"));
    EXPECT_TRUE(
        holds(problem({"loss.kind=cross_entropy", "loss.target=y", "loss.label_smoothing=0.1",
                       "eval.metrics=['perplexity']"}),
              "perplexity needs a cross entropy without loss.label_smoothing (got 0.1); leave one of them out"));
    EXPECT_TRUE(
        holds(problem_with("nll", "['acuracy']"),
              "eval.metrics does not know 'acuracy' (expected accuracy or perplexity); did you mean 'accuracy'?"));
    EXPECT_TRUE(holds(problem_with("nll", "['accuracy', 'accuracy']"), "eval.metrics names 'accuracy' twice"));
}

TEST(Rules, AllProblemsAreShownWithPositions) {
    const std::string text =
        kShortPlan +
        "[mesh]\npp = 2\n[pipeline]\nnum_stages = 4\nschedule_file = \"s.csv\"\n[train]\nsteps = 5\n"
        "epochs = 1\neval_every = 2\nglobal_batch_size = 3\n[optimizer]\nmomentum = 0.5\n";
    const Error error = error_at({}, 4, text);
    ASSERT_EQ(error.problems().size(), 6U);
    for (const Problem& one : error.problems()) {
        EXPECT_GT(one.position->line, 0) << one.message;
        EXPECT_FALSE(one.position->text.empty()) << one.message;
    }
    EXPECT_EQ(error_of([&] { check_plan(parse_with({}, text)); }).problems().size(), 5U);
}

}  // namespace
}  // namespace vpp
