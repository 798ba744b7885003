// Plan -> Program on small models with synthetic data.
#include "program/prepare.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "plan/reader.hpp"
#include "plan/rules.hpp"
#include "program/estimate.hpp"
#include "schedule/checker.hpp"
#include "schedule/generators.hpp"
#include "unit/data/support.hpp"
#include "unit/graph/models.hpp"
#include "unit/plan/plan_texts.hpp"

namespace vpp {
namespace {

using namespace test;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// Linear, batch norm and dropout, four times.
ModuleSpec model_spec(int seed = 0) {
    std::vector<ModuleSpec> blocks;
    for (int i = 0; i < 4; ++i) blocks.push_back(sequential({linear(4, 4, seed + i), batch_norm(4), dropout()}));
    return sequential(std::move(blocks));
}

Plan plan_for(const std::filesystem::path& model, int world, std::vector<std::string> overrides = {}) {
    const std::string text = "[model]\nfile = \"" + model.string() + R"("
[loss]
kind = "mse"
target = "y"
[data]
kind = "synthetic"
samples = 64
[data.fields]
x = "float32[4]"
y = "float32[4]"
[pipeline]
split_method = "UNIFORM"
num_microbatches = 2
[train]
steps = 2
global_batch_size = 8
)";
    overrides.push_back("mesh.pp=" + std::to_string(world));
    return resolve_plan(parse_plan(text, "plan.toml", overrides, built_names()), world);
}

/// The data of training serves as validation data too.
Datasets data_of(const Plan& plan, bool validation = true) {
    Datasets data = open_datasets(plan);
    if (validation) data.validation = open_dataset(plan, Subset::Train);
    return data;
}

TEST(Prepare, PipelineRunsAreMicrobatchesOfOneStep) {
    const auto file = save(model_spec());
    for (const std::string schedule : {"GPIPE", "ZERO_BUBBLE_H1", "AUTO"}) {
        SCOPED_TRACE(schedule);
        const Plan plan = plan_for(file, 2, {"pipeline.schedule_type=" + schedule, "train.accumulate=2"});
        const Program program = prepare(plan, data_of(plan)).program;
        EXPECT_EQ(program.training.schedule.num_microbatches, 4);
        EXPECT_EQ(program.evaluation->schedule.num_microbatches, 4);
        EXPECT_EQ(program.microbatch_size, 2);
        EXPECT_NO_THROW(check_schedule(program.training.schedule, schedule_edges(program.training.split)));
        EXPECT_EQ(reference_program(program).training.schedule.num_microbatches, 4);
    }
}

TEST(Prepare, AStepWithTooManyPipelineRunsIsRefused) {
    const Plan plan =
        plan_for(save(model_spec()), 2,
                 {"pipeline.num_microbatches=4096", "train.accumulate=1000", "train.global_batch_size=4096000"});
    const Error error = error_of([&] { prepare(plan, data_of(plan, false)); });
    EXPECT_EQ(error.kind(), ErrorKind::Plan);
    EXPECT_THAT(error.what(), HasSubstr("a step has too many pipeline runs (got train.accumulate = 1000, expected at "
                                        "most 512 with 2 stages x 4096 microbatches); try train.accumulate = 512"));
}

TEST(Prepare, GivesAProvenProgramForEveryNumberOfRanks) {
    const auto file = save(model_spec());
    for (int world : {1, 2, 4}) {
        const Plan plan = plan_for(file, world);
        const Prepared prepared = prepare(plan, data_of(plan));
        const Program& program = prepared.program;
        EXPECT_EQ(program.training.split.num_stages(), world);
        EXPECT_EQ(program.microbatch_size, 4);
        EXPECT_EQ(program.plan_text, plan.resolved_text);
        ASSERT_TRUE(program.evaluation);
        EXPECT_NE(prepared.sources.evaluation, nullptr);
        for (const Phase* phase : {&program.training, &*program.evaluation}) {
            EXPECT_NO_THROW(check_schedule(phase->schedule, schedule_edges(phase->split)));
        }
        EXPECT_TRUE(program.evaluation->schedule.forward_only);
        EXPECT_EQ(digest_of(prepare(plan, data_of(plan)).program), digest_of(program)) << "deterministic";
    }
}

TEST(Prepare, AutoIsAProvenScheduleOfTheSearch) {
    const auto file = save(model_spec());
    const Plan plan = plan_for(file, 2,
                               {"pipeline.schedule_type=AUTO", "pipeline.virtual_chunks=auto",
                                "pipeline.num_microbatches=4", "pipeline.search.moves=500"});
    const Program program = prepare(plan, data_of(plan)).program;
    ASSERT_TRUE(program.search);
    EXPECT_EQ(program.training.schedule.name, "AUTO");
    EXPECT_EQ(program.training.split.num_stages(), 2 * program.search->stages_per_rank);
    EXPECT_LE(program.search->makespan, program.search->best_generated);
    EXPECT_EQ(program.costs.stages.size(), program.training.split.stages.size());
    for (const Phase* phase : {&program.training, &*program.evaluation}) {
        EXPECT_NO_THROW(check_schedule(phase->schedule, schedule_edges(phase->split)));
        EXPECT_EQ(phase->schedule.rank_of_stage, program.training.schedule.rank_of_stage);
    }
    EXPECT_EQ(digest_of(prepare(plan, data_of(plan)).program), digest_of(program)) << "deterministic";
    EXPECT_FALSE(reference_program(program).search);
}

TEST(Prepare, TheCostFilesDigestIsPartOfTheProgram) {
    const TemporaryFolder folder;
    const auto file = save(model_spec());
    const auto source_with = [&](const std::string& text) {
        const Plan plan = plan_for(file, 2, {"pipeline.cost_file=\"" + folder.write("c.json", text) + '"'});
        return prepare(plan, data_of(plan)).program;
    };
    const Program one = source_with(R"({"unit": "ms", "modules": {"0": {"F": 1, "B": 2}}})");
    const Program other = source_with(R"({"unit": "ms", "modules": {"0": {"F": 1, "B": 3}}})");
    EXPECT_EQ(one.cost_unit, "ms");
    EXPECT_NE(one.cost_source, other.cost_source);
    EXPECT_NE(digest_of(one), digest_of(other));
    EXPECT_EQ(one.training.schedule.actions, other.training.schedule.actions) << "1F1B looks at no costs";
    EXPECT_THAT(refusal(ErrorKind::Plan, [&] { source_with(R"({"modules": {"zero": {"F": 1, "B": 2}}})"); }),
                HasSubstr("'zero', which the model has not"));
}

TEST(Prepare, AScheduleAboveTheLimitIsRefused) {
    const auto file = save(model_spec());
    const Plan plan =
        plan_for(file, 2, {"pipeline.schedule_type=GPIPE", "pipeline.num_microbatches=4", "pipeline.memory_limit=3"});
    EXPECT_THAT(refusal(ErrorKind::Plan, [&] { prepare(plan, data_of(plan)); }), HasSubstr("these fit: \"1F1B\""));
}

// Every schedule that the refusal names, AUTO too, was tried; so the plan that names it is not refused.
TEST(Prepare, WhatARefusalAdvisesKeepsToTheLimit) {
    const auto file = save(model_spec());
    const auto prepare_as = [&](const std::string& schedule, const std::string& limit) {
        std::vector<std::string> keys{"pipeline.schedule_type=" + schedule, "pipeline.num_microbatches=4",
                                      "pipeline.memory_limit=" + limit};
        if (schedule == "AUTO") keys.emplace_back("pipeline.search.moves=500");
        const Plan plan = plan_for(file, 2, keys);
        return prepare(plan, data_of(plan)).program;
    };
    const std::string below =
        refusal(ErrorKind::Plan, [&] { prepare_as("GPIPE", "16B"); });  // the least of one microbatch
    EXPECT_THAT(below, HasSubstr("less than the activations of one microbatch"));
    const std::string number = below.substr(below.find("expected at least ") + 18);
    const int64_t least = std::stoll(number) * (number.find("KiB") < number.find(" =") ? 1024 : 1);
    int num_advised = 0;
    for (int64_t limit = least; limit < 3 * least; limit += least / 4) {
        const std::string text = std::to_string(limit) + "B";
        const std::string refused = refusal(ErrorKind::Plan, [&] { prepare_as("GPIPE", text); });
        EXPECT_THAT(refused, HasSubstr("\"AUTO\" (")) << limit;
        for (const ScheduleKind& kind : schedule_kinds()) {
            const std::string name = kind.name;
            if (refused.find('"' + name + "\" (") == refused.npos) continue;
            EXPECT_NO_THROW(prepare_as(name, text)) << name << limit;
            ++num_advised;
        }
        const Program program = prepare_as("AUTO", text);
        const Plan plan = plan_for(file, 2, {});
        for (const RankEstimate& rank : estimate_ranks(plan, program)) EXPECT_LE(rank.activation_bytes, limit);
    }
    EXPECT_GT(num_advised, 3);
}

// ZERO_BUBBLE_H1 keeps two activations on rank 0. A tied weight holds them to the last rank's W, which comes late.
TEST(Prepare, TheLimitIsForTheScheduleThatRuns) {
    const ModuleSpec first = linear(4, 4, 0);
    const auto prepare_with = [&](const ModuleSpec& last) {
        const auto file = save(sequential({first, linear(4, 4, 1), linear(4, 4, 2), last}));
        const Plan plan = plan_for(
            file, 2,
            {"pipeline.schedule_type=ZERO_BUBBLE_H1", "pipeline.num_microbatches=4", "pipeline.memory_limit=2"});
        prepare(plan, data_of(plan, /*validation=*/false));
    };
    EXPECT_NO_THROW(prepare_with(linear(4, 4, 3)));
    const std::string text = refusal(ErrorKind::Plan, [&] { prepare_with(first); });
    EXPECT_THAT(text, HasSubstr("ZERO_BUBBLE_H1 is above pipeline.memory_limit"));
    EXPECT_THAT(text, HasSubstr("these fit: \"1F1B\""));
    EXPECT_THAT(text, Not(HasSubstr("\"ZERO_BUBBLE_H1\"")));
}

TEST(Prepare, EvaluationUsesEveryParameterWhereTrainingOwnsIt) {
    const auto file = save(model_spec());
    const Plan plan = plan_for(file, 4);
    const Program program = prepare(plan, data_of(plan)).program;
    const Phase &training = program.training, &evaluation = *program.evaluation;
    EXPECT_LT(evaluation.graph.num_ops(), training.graph.num_ops()) << "no counters of batch norm";
    ASSERT_EQ(evaluation.graph.parameters.size(), training.graph.parameters.size());
    int compared = 0;
    for (size_t p = 0; p < training.graph.parameters.size(); ++p) {
        const std::vector<int>&there = evaluation.graph.parameters[p].uses, &here = training.graph.parameters[p].uses;
        EXPECT_EQ(evaluation.graph.parameters[p].name, training.graph.parameters[p].name);
        if (there.empty() || here.empty()) continue;
        EXPECT_EQ(evaluation.split.stage_of_op(there.front()), training.split.stage_of_op(here.front()));
        ++compared;
    }
    EXPECT_EQ(compared, 4 * 6);
}

TEST(Prepare, WithoutValidationDataThereIsNoEvaluation) {
    const Plan plan = plan_for(save(model_spec()), 2);
    const Prepared prepared = prepare(plan, data_of(plan, false));
    EXPECT_FALSE(prepared.program.evaluation);
    EXPECT_EQ(prepared.sources.evaluation, nullptr);
}

// As a trace in training mode has it.
TEST(Prepare, AModelThatWritesItsBuffersInEvaluationIsNamed) {
    const auto warnings_of = [](const ModuleSpec& norm) {
        const Plan plan = plan_for(save(sequential({linear(4, 4, 0), norm, linear(4, 4, 1)})), 1);
        return testing::PrintToString(prepare(plan, data_of(plan)).program.training.graph.warnings);
    };
    ModuleSpec traced = batch_norm(4);
    for (size_t at; (at = traced.code.find("self.training")) != std::string::npos;) traced.code.replace(at, 13, "True");
    EXPECT_THAT(warnings_of(traced), HasSubstr("the model writes '1.running_mean' in evaluation too"));
    EXPECT_THAT(warnings_of(batch_norm(4)), Not(HasSubstr("in evaluation too")));
}

TEST(Prepare, ATraceOfOneBatchSizeIsRefusedWhereEvaluationEndsWithFewer) {
    const ModuleSpec traced{"Model",
                            "def forward(self, x):\n"
                            "    return torch.linear(x.view([2, 4]), self.w)\n",
                            {{"w", weight({4, 4})}}};
    const auto model = save(traced);
    const std::vector<std::string> given{"pipeline.num_microbatches=4", "train.eval_every=1", "data.val_split=0.5",
                                         "data.samples=26"};
    const auto text_with = [&](const std::string& more) {
        std::vector<std::string> overrides = given;
        overrides.push_back(more);
        const Plan plan = plan_for(model, 1, overrides);
        return test::error_of(ErrorKind::BadData, [&] { prepare(plan, open_datasets(plan)); });
    };
    EXPECT_THAT(text_with("train.seed=1"),
                AllOf(HasSubstr("the last microbatch of the validation data has 1 sample instead of 2"),
                      HasSubstr("Leave these samples out with train.eval_batches = 1, or script the model instead")));
    EXPECT_THAT(text_with("data.samples=14"), HasSubstr("batch size. Script the model instead"));
    for (const char* good : {"train.eval_batches=1", "train.eval_every=0", "data.samples=32"}) {
        std::vector<std::string> overrides = given;
        overrides.push_back(good);
        const Plan plan = plan_for(model, 1, overrides);
        EXPECT_TRUE(prepare(plan, open_datasets(plan)).program.evaluation.has_value()) << good;
    }
}

Datasets validation_of(const Plan& plan) {
    return {nullptr, open_dataset(plan, Subset::Train)};
}

TEST(Prepare, AModelThatTakesNoZerosIsPreparedWithTheData) {
    const auto file = save({"Model",
                            R"JIT(
def forward(self, x):
    known = int(torch.sum(torch.ne(x, 0)))
    return torch.mul(torch.view(x, [x.size(0), known // x.size(0)]), self.w)
)JIT",
                            {{"w", weight({4})}}});
    const Plan plan = plan_for(file, 1, {"data.samples=3"});  // a microbatch has four
    const Prepared prepared = prepare(plan, data_of(plan));
    EXPECT_EQ(prepared.program.evaluation->graph.num_ops(), prepared.program.training.graph.num_ops());
    EXPECT_FALSE(prepare_evaluation(plan, data_of(plan), {.num_samples = 64}).program.has_training());
}

TEST(PrepareEvaluation, HasNoTrainingPhaseAndCutsTheEvaluationGraphItself) {
    const auto file = save(model_spec());
    for (int world : {1, 2, 4}) {
        const Plan plan = plan_for(file, world);
        const Prepared prepared = prepare_evaluation(plan, validation_of(plan), {.num_samples = 64});
        const Program& program = prepared.program;
        EXPECT_FALSE(program.has_training());
        EXPECT_EQ(prepared.sources.training, nullptr);
        ASSERT_TRUE(program.evaluation);
        EXPECT_EQ(program.evaluation->split.num_stages(), world);
        EXPECT_TRUE(program.evaluation->schedule.forward_only);
        const Program copy = program_from_bytes(to_bytes(program));
        EXPECT_EQ(digest_of(copy), digest_of(program));
        const Sources sources = open_sources(plan, copy, at::kCPU);
        EXPECT_EQ(sources.training, nullptr);
        EXPECT_NE(sources.evaluation, nullptr);
    }
}

TEST(PrepareEvaluation, SplitPointsMayNameWhatDoesNothingInEvaluation) {
    const auto file = save(model_spec());
    const Plan plan =
        plan_for(file, 2, {"pipeline.split_method=\"MANUAL\"", "pipeline.split_points=[\"1.2\"]"});  // a dropout
    const Split split = prepare_evaluation(plan, validation_of(plan), {}).program.evaluation->split;
    const Split training = prepare(plan, data_of(plan)).program.evaluation->split;
    EXPECT_EQ(split.cuts, training.cuts);
    const Plan wrong = plan_for(file, 2, {"pipeline.split_method=\"MANUAL\"", "pipeline.split_points=[\"none\"]"});
    EXPECT_THROW(prepare_evaluation(wrong, validation_of(wrong), {}), Error);
}

// A trace of model_spec(), in one mode.
ModuleSpec traced_spec(const std::string& flag, int seed = 0) {
    const std::function<void(ModuleSpec&)> fix = [&](ModuleSpec& part) {
        for (size_t at; (at = part.code.find("self.training")) != std::string::npos;) part.code.replace(at, 13, flag);
        for (auto& child : part.children) fix(child.second);
    };
    ModuleSpec spec = model_spec(seed);
    fix(spec);
    return spec;
}

TEST(Prepare, AStepThatTakesSamplesTwiceIsTold) {
    const std::string file = save(model_spec());
    const auto warnings = [&](const std::string& batch) {
        const Plan plan = plan_for(file, 1, {"train.global_batch_size=" + batch});
        return prepare(plan, data_of(plan)).program.training.graph.warnings;
    };
    EXPECT_THAT(warnings("64"), ::testing::IsEmpty());
    EXPECT_THAT(warnings("66"),
                ::testing::ElementsAre("a step takes 66 samples (train.global_batch_size), and the data have 64: some "
                                       "come more than once in each step"));
}

TEST(Prepare, ATraceIsEvaluatedFromTheFileForIt) {
    const std::string file = save(traced_spec("True")), twin = save(traced_spec("False", 8));
    const Plan plan = plan_for(file, 2, {"model.eval_file=" + twin}), scripted = plan_for(save(model_spec()), 2);
    const Prepared prepared = prepare(plan, data_of(plan));
    const Program& program = prepared.program;
    EXPECT_THAT(program.training.graph.warnings, ::testing::IsEmpty());
    EXPECT_EQ(labels_of(program.evaluation->graph),
              labels_of(prepare(scripted, data_of(scripted)).program.evaluation->graph));
    EXPECT_EQ(bits_of(prepared.sources.evaluation->weight(0)), bits_of(prepared.sources.training->weight(0)));
    EXPECT_EQ(training_digest(plan, program.fields), training_digest(plan_for(file, 2), program.fields))
        << "a checkpoint belongs to the model with any file for evaluation";
    const Program alone = prepare_evaluation(plan, validation_of(plan), {.num_samples = 64}).program;
    EXPECT_EQ(labels_of(alone.evaluation->graph), labels_of(program.evaluation->graph));
    EXPECT_NE(open_sources(plan, program, at::kCPU).evaluation, nullptr);
    std::filesystem::rename(save(traced_spec("True", 8)), twin);
    EXPECT_THAT(refusal(ErrorKind::RanksDisagree, [&] { open_sources(plan, program, at::kCPU); }), HasSubstr(twin));
    EXPECT_THAT(testing::PrintToString(prepare(plan, data_of(plan)).program.training.graph.warnings),
                HasSubstr("model.eval_file was not traced in eval mode"));
}

TEST(Prepare, WhatEvaluationDoesWithoutIsSaid) {
    ModuleSpec training{"Model", "def forward(self, x):\n    return x * self.w + self.b\n"};
    training.parameters = {{"w", weight({4})}, {"b", weight({4})}};
    ModuleSpec twin = training;
    twin.code = "def forward(self, x):\n    return x * self.w\n";
    const auto warnings = [](const ModuleSpec& model, const ModuleSpec& of_evaluation) {
        const Plan plan = plan_for(save(model), 1, {"model.eval_file=" + save(of_evaluation).string()});
        return testing::PrintToString(prepare(plan, data_of(plan)).program.training.graph.warnings);
    };
    EXPECT_THAT(warnings(training, twin),
                HasSubstr("evaluation does not use 'b', which training changes: right for a head of training alone; "
                          "where eval() merges weights into others, its file cannot be model.eval_file"));
    EXPECT_EQ(warnings(training, training), "{}");
    EXPECT_EQ(warnings(twin, training), "{}") << "training does not use it either";
}

TEST(PrepareEvaluation, KnowsTheModelOfATraining) {
    const auto file = save(model_spec());
    const Plan plan = plan_for(file, 2);
    const Program program = prepare(plan, data_of(plan)).program;
    EXPECT_EQ(training_digest(plan, program.fields), program.training.graph.digest);
    EXPECT_NE(training_digest(plan, program.fields), program.evaluation->graph.digest);
}

TEST(WithLayout, IsWhatAPlanForThatLayoutPrepares) {
    const auto file = save(model_spec());
    const Plan one = plan_for(file, 1);
    const Program base = prepare(one, data_of(one)).program;
    ASSERT_TRUE(base.evaluation);
    const Plan two = plan_for(
        file, 2, {"pipeline.num_microbatches=4", "train.global_batch_size=16", "pipeline.schedule_type=\"GPIPE\""});
    EXPECT_EQ(digest_of(with_layout(base, two, std::nullopt)), digest_of(prepare(two, data_of(two)).program));
    const std::vector<int> cuts{base.training.split.stages[0].ops.end / 2};
    ASSERT_TRUE(base.training.graph.cuts[static_cast<size_t>(cuts[0])].legal);
    EXPECT_EQ(with_layout(base, two, cuts).training.split.cuts, cuts);
    Plan automatic = two;
    automatic.pipeline.schedule_type = "AUTO";
    try {
        with_layout(base, automatic, cuts);
        ADD_FAILURE() << "cuts of AUTO came from elsewhere";
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::Plan);
        EXPECT_STREQ(error.what(), "AUTO chooses the number of stages itself, so it takes no cuts from elsewhere");
    }
}

TEST(Prepare, ValidationDataMustHaveTheFieldsOfTheTrainingData) {
    const TemporaryFolder folder;
    folder.write("x.npy", npy("<f4", "(4, 2)", std::string(32, '\0')));
    folder.write("narrow.npy", npy("<f4", "(4, 1)", std::string(16, '\0')));
    const auto plan_with = [&](const std::string& validation) {
        return parse_plan(
            "[model]\nfile = \"m.pt\"\n[data]\nkind = \"arrays\"\n[data.train]\nx = \"x.npy\"\n"
            "[data.val]\n" +
                validation,
            folder.path("plan.toml"), {}, built_names());
    };
    EXPECT_NE(open_datasets(plan_with("x = \"x.npy\"")).validation, nullptr);
    const std::string text = refusal(ErrorKind::BadData, [&] { open_datasets(plan_with("x = \"narrow.npy\"")); });
    EXPECT_THAT(text, HasSubstr("'x' of the validation data"));
    EXPECT_THAT(text, HasSubstr("got float32[1], expected float32[2]"));
    EXPECT_THAT(refusal(ErrorKind::BadData, [&] { open_datasets(plan_with("y = \"x.npy\"")); }),
                HasSubstr("got no such field"));
}

TEST(Prepare, TheReferenceIsOneStageOfTheSameGraph) {
    const Plan plan = plan_for(save(model_spec()), 4);
    const Program program = prepare(plan, data_of(plan)).program;
    const Program reference = reference_program(program);
    EXPECT_EQ(reference.mesh, (Mesh{1, 1, 1}));
    for (const Phase* phase : {&reference.training, &*reference.evaluation}) {
        EXPECT_EQ(phase->split.num_stages(), 1);
        EXPECT_TRUE(phase->split.edges.empty());
        EXPECT_EQ(phase->schedule.num_microbatches, 2);
    }
    EXPECT_EQ(reference.training.graph.digest, program.training.graph.digest);
    EXPECT_EQ(reference.training.graph.num_ops(), program.training.graph.num_ops());
}

TEST(Prepare, AnotherRankOpensTheSameModelOnly) {
    const auto file = save(model_spec());
    const Plan plan = plan_for(file, 2);
    const Program program = program_from_bytes(to_bytes(prepare(plan, data_of(plan)).program));
    const Sources sources = open_sources(plan, program, at::kCPU);
    EXPECT_NE(sources.training, nullptr);
    EXPECT_NE(sources.evaluation, nullptr);
    EXPECT_EQ(bits_of(sources.training->weight(0)), bits_of(sources.evaluation->weight(0)));
    std::filesystem::rename(save(model_spec(1)), file);
    EXPECT_THAT(refusal(ErrorKind::RanksDisagree, [&] { open_sources(plan, program, at::kCPU); }),
                HasSubstr("reads another model file than rank 0"));
}

TEST(Prepare, ATargetOfAnotherTypeThanTheOutputIsRefusedForMse) {
    const auto file = save(model_spec());
    for (const char* type : {"float64[4]", "int64[4] < 3"}) {
        const Plan plan = plan_for(file, 2, {std::string("data.fields.y=\"") + type + '"'});
        const Datasets data = data_of(plan);
        EXPECT_THAT(
            refusal(ErrorKind::Plan, [&] { prepare(plan, data); }),
            HasSubstr(
                "the target 'y' is " + std::string(type).substr(0, std::string(type).find('[')) +
                ", and mse needs the type of the model's output, float32; save the field as float32, with NumPy "
                "values.astype(\"float32\"), or add a [[data.transform]] of it with mean = [0.0] and std = [1.0]"));
    }
    for (const char* mended : {"loss.kind=\"l1\"", "data.transform=[{field=\"y\", mean=[0.0], std=[1.0]}]"}) {
        const Plan plan = plan_for(file, 2, {"data.fields.y=\"float64[4]\"", mended});
        EXPECT_TRUE(prepare(plan, data_of(plan)).program.has_training()) << mended;
    }
    const Plan half = plan_for(file, 2, {"train.precision=\"bf16\""});
    EXPECT_TRUE(prepare(half, data_of(half)).program.has_training()) << "autocast takes the output as float32";
}

TEST(Prepare, TargetsAreFloatingPointWhereTheLossNeedsIt) {
    const auto file = save(model_spec());
    using Texts = std::pair<std::string, std::string>;
    for (const auto& [kind, type] :
         {Texts{"bce_with_logits", "int64[4] < 2"}, Texts{"bce_with_logits", "bool[4]"}, Texts{"l1", "bool[4]"}}) {
        const Plan plan = plan_for(file, 2, {"loss.kind=" + kind, "data.fields.y=\"" + type + '"'});
        const Datasets data = data_of(plan);
        const std::string said = refusal(ErrorKind::Plan, [&] { prepare(plan, data); });
        EXPECT_THAT(said, HasSubstr(kind + " needs floating point; save the field as float32, with NumPy "
                                           "values.astype(\"float32\")"));
        EXPECT_EQ(said.find("data.transform") == std::string::npos, type[0] == 'b') << "which takes no bool";
    }
    const Plan plan = plan_for(file, 2, {"loss.kind=l1", "data.fields.y=\"int64[4] < 2\""});
    EXPECT_TRUE(prepare(plan, data_of(plan)).program.has_training());
}

TEST(Prepare, ClassesOfAnotherTypeThanInt64AreRefused) {
    const auto file = save(model_spec());
    const auto plan_of = [&](const std::string& kind, const std::string& type) {
        return plan_for(file, 2, {"loss.kind=" + kind, "data.fields.y=\"" + type + '"'});
    };
    for (const std::string kind : {"cross_entropy", "nll"}) {
        for (const std::string type : {"int32[] < 4", "int16[] < 4", "bool[]", "float64[]"}) {
            const Plan plan = plan_of(kind, type);
            const Datasets data = data_of(plan);
            EXPECT_THAT(refusal(ErrorKind::Plan, [&] { prepare(plan, data); }),
                        HasSubstr("the target 'y' is " + type.substr(0, type.find('[')) + ", and " + kind +
                                  " needs classes of int64; save the field as int64, with NumPy "
                                  "labels.astype(\"int64\")"));
        }
        for (const std::string type : {"int64[] < 4", "uint8[] < 4"}) {
            const Plan plan = plan_of(kind, type);
            EXPECT_TRUE(prepare(plan, data_of(plan)).program.has_training()) << kind << ' ' << type;
        }
    }
    const Plan probabilities = plan_of("cross_entropy", "float32[4]");
    EXPECT_TRUE(prepare(probabilities, data_of(probabilities)).program.has_training());
    const Plan no_classes = plan_of("nll", "float32[4]");
    const Datasets data = data_of(no_classes);
    EXPECT_THAT(refusal(ErrorKind::Plan, [&] { prepare(no_classes, data); }), HasSubstr("is float32, and nll needs"));
    std::vector<std::string> of_rows{"loss.kind=cross_entropy", "data.fields.x=\"float32[3, 4]\"",
                                     "data.fields.y=\"uint8[3] < 4\"", "loss.class_dim=-1"};
    const auto rows = save(sequential({linear(4, 4), linear(4, 4)}));
    const Plan bytes = plan_for(rows, 2, of_rows);
    EXPECT_TRUE(prepare(bytes, data_of(bytes)).program.has_training());
    of_rows.pop_back();
    const Plan second = plan_for(rows, 2, of_rows);
    const Datasets second_data = data_of(second);
    EXPECT_THAT(refusal(ErrorKind::Plan, [&] { prepare(second, second_data); }), HasSubstr("needs classes of int64"));
}

TEST(Prepare, WhatIsWrongIsToldBeforeAnythingRuns) {
    const auto file = save(model_spec());
    Plan plan = plan_for(file, 2, {"pipeline.split_method=\"MANUAL\"", "pipeline.split_points=[\"2.O\"]"});
    const Datasets data = data_of(plan);
    EXPECT_THAT(refusal(ErrorKind::Plan, [&] { prepare(plan, data); }), HasSubstr("did you mean '2.0'?"));
    plan.model.file = "/nonexistent/model.pt";
    refusal(ErrorKind::MissingInput, [&] { prepare(plan, data); });
}

TEST(Prepare, AModelWithoutParametersIsRefusedUnlessItOnlyGoesForward) {
    const ModuleSpec frozen{"Model", "def forward(self, x):\n    return torch.tanh(x * 2.0) + 1.0\n"};
    const auto prepare_with = [&](const std::vector<std::string>& set) {
        const Plan plan = plan_for(save(frozen), 1, set);
        prepare(plan, data_of(plan, false));
    };
    EXPECT_THAT(refusal(ErrorKind::BadData, [&] { prepare_with({}); }), HasSubstr("the model has no parameters"));
    EXPECT_NO_THROW(prepare_with({"pipeline.forward_only=true"}));
}

}  // namespace
}  // namespace vpp
