#include "plan/reader.hpp"

#include <gtest/gtest.h>

#include <ctime>
#include <fstream>

#include "plan/rules.hpp"
#include "unit/plan/plan_texts.hpp"

namespace vpp {
namespace {

using test::built_names;
using test::error_of;
using test::holds;
using test::kShortPlan;

Plan plan_of_text(const std::string& text, const std::vector<std::string>& overrides = {}) {
    return parse_plan(text, "configs/p.toml", overrides, built_names());
}

std::string problem_of(const std::string& text, const std::vector<std::string>& overrides = {}) {
    return error_of([&] { plan_of_text(text, overrides); }).what();
}

std::string repeated(const std::string& text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += text;
    return all;
}

TEST(Reader, ReadsAWholePlan) {
    const Plan plan = plan_of_text(test::kLongPlan);
    EXPECT_EQ(plan.name, "p");
    EXPECT_EQ(plan.model.file, "configs/../models/out/gpt.pt");
    EXPECT_EQ(plan.data.train, (std::vector<std::string>{"configs/a.bin", "/data/b.bin"}));
    EXPECT_EQ(plan.data.sequence_length, 64);
    EXPECT_EQ(plan.mesh.threads, 2);
    EXPECT_EQ(plan.pipeline.num_stages, 4);
    EXPECT_EQ(plan.pipeline.split_points[3], "b3");
    EXPECT_EQ(plan.pipeline.schedule_type, "INTERLEAVED_1F1B");
    EXPECT_EQ(plan.optimizer.clip_norm, 1.0);
    EXPECT_EQ(plan.optimizer.values.beta2, 0.95);
    EXPECT_EQ(plan.train.steps, 200);
    EXPECT_FALSE(plan.train.epochs);
    EXPECT_FALSE(plan.loss);
    EXPECT_EQ(plan.run.dir, "runs/gpt");
}

TEST(Reader, GroupsInheritWhatTheyDoNotName) {
    const Plan plan = plan_of_text(test::kLongPlan);
    ASSERT_EQ(plan.optimizer.groups.size(), 2U);
    EXPECT_EQ(plan.optimizer.groups[0].values.lr, 3e-4);
    EXPECT_EQ(plan.optimizer.groups[0].values.weight_decay, 0);
    EXPECT_EQ(plan.optimizer.groups[1].values.lr, 1e-5);
    EXPECT_EQ(plan.optimizer.groups[1].values.weight_decay, 0.1);
    EXPECT_EQ(plan.optimizer.groups[1].values.beta2, 0.95);
}

TEST(Reader, DefaultsAreThoseOfTheDesign) {
    const Plan plan = plan_of_text(kShortPlan);
    EXPECT_EQ(plan.pipeline.mode, "GRAPH_EAGER");
    EXPECT_EQ(plan.pipeline.schedule_type, "1F1B");
    EXPECT_EQ(plan.optimizer.kind, "adamw");
    EXPECT_EQ(plan.optimizer.values.lr, 1e-3);
    EXPECT_EQ(plan.data.token_dtype, "auto");
    EXPECT_FALSE(plan.mesh.pp);
}

TEST(Reader, PositionsAreThoseOfTheValues) {
    const Plan plan = plan_of_text(test::kLongPlan, {"pipeline.split_points[1]=x", "optimizer.group[0].lr=0.1"});
    EXPECT_EQ(plan.positions.at("mesh.threads").line, 11);
    EXPECT_EQ(plan.positions.at("mesh.threads").column, 11);
    EXPECT_EQ(plan.positions.at("pipeline.split_points[2]").column, 29);
    EXPECT_EQ(plan.positions.at("pipeline.split_points[1]").source, "--set");
    EXPECT_EQ(plan.positions.at("pipeline.split_points[1]").column, 26);
    EXPECT_EQ(plan.where("optimizer.group[0].lr")->text, "optimizer.group[0].lr=0.1");
    EXPECT_TRUE(plan.where("optimizer.group[1].eps"));
    EXPECT_FALSE(plan.where("mesh.device"));
}

TEST(Reader, SixMistakesAreSixProblemsWithPositions) {
    const Error error = error_of([] {
        plan_of_text(
            "[model]\nfile = 3\n[data]\nkind = \"token\"\ntrain = [\"a\"]\nsequence_length = 128\n[mesh]\nthreds = 2\n"
            "tp = 2\nzero1 = 3\n[pipeline]\nvirtual_chunks = 0\n");
    });
    EXPECT_EQ(error.kind(), ErrorKind::Plan);
    ASSERT_EQ(error.problems().size(), 6U);
    const std::vector<std::pair<int, int>> places = {{2, 8}, {4, 8}, {8, 1}, {9, 6}, {10, 9}, {12, 18}};
    for (size_t i = 0; i < places.size(); ++i) {
        EXPECT_EQ(error.problems()[i].position->line, places[i].first) << i;
        EXPECT_EQ(error.problems()[i].position->column, places[i].second) << i;
    }
    EXPECT_TRUE(holds(error.what(),
                      "configs/p.toml:8:1: unknown key 'threds' in [mesh]; did you mean 'threads'?\n"
                      "    threds = 2\n    ^"));
}

TEST(Reader, UnknownNamesAreAnswered) {
    EXPECT_TRUE(holds(problem_of(kShortPlan + "[pipelin]\n"), "unknown section 'pipelin'; did you mean 'pipeline'?"));
    EXPECT_TRUE(holds(problem_of(kShortPlan + "[mesh]\nnum_stages = 2"), "did you mean pipeline.num_stages?"));
    EXPECT_TRUE(holds(problem_of("steps = 4\n" + kShortPlan), "unknown key 'steps'; did you mean train.steps?"));
    EXPECT_TRUE(holds(problem_of(kShortPlan + "[recompute]\n"), "did you mean section pipeline.recompute?"));
    EXPECT_TRUE(holds(problem_of(kShortPlan + "[pipeline]\nshared_modules = []"), "tied parameters are found"));
    EXPECT_TRUE(holds(problem_of(kShortPlan + "[zzzzzzzzzz]\n"), "unknown section 'zzzzzzzzzz'"));
    EXPECT_TRUE(holds(problem_of("'model.file' = 'a'\n" + kShortPlan), "unknown key 'model.file'"));
}

TEST(Reader, EveryVeScaleKeyIsAnswered) {
    for (const char* key :
         {"shared_modules", "p2p_tensor_dtype", "reuse_p2p_tensor_shape", "batch_p2p_comm", "tracer_type",
          "tracer_kwargs", "enable_vpp_split_points", "reuse_schedule", "data_shape"}) {
        EXPECT_TRUE(holds(problem_of(kShortPlan + "[pipeline]\n" + key + " = 1"), "leave it out: ")) << key;
    }
}

TEST(Reader, MissingKeysAndSectionsAreNamed) {
    const std::string nothing = problem_of("");
    EXPECT_TRUE(holds(nothing, "configs/p.toml: model.file is missing"));
    EXPECT_TRUE(holds(nothing, "configs/p.toml: data.kind is missing"));
    EXPECT_TRUE(holds(problem_of(kShortPlan + "[loss]\nkind = 'mse'\n"), ":7:1: loss.target is missing"));
    EXPECT_TRUE(holds(problem_of(kShortPlan + "[[optimizer.group]]\nlr = 1\n"), "optimizer.group[0].match is missing"));
}

TEST(Reader, SectionsMustBeSections) {
    EXPECT_TRUE(holds(problem_of("mesh = 3\n" + kShortPlan), "mesh is a section, not a key; write [mesh]"));
    EXPECT_TRUE(holds(problem_of("[[mesh]]\n" + kShortPlan), "mesh is a section"));
    EXPECT_TRUE(holds(problem_of(kShortPlan + "[optimizer.group]\n"),
                      "optimizer.group is a list of tables; write [[optimizer.group]]"));
    EXPECT_TRUE(holds(problem_of(kShortPlan + "[optimizer]\ngroup = [1]"),
                      "optimizer.group[0] is not a table; write [[optimizer.group]]"));
    EXPECT_TRUE(holds(problem_of(kShortPlan + "[train.steps]\n"), "train.steps has the wrong type (got a table"));
}

TEST(Reader, TablesOfInitialValuesAreReadInOrder) {
    const Plan plan = plan_of_text(
        kShortPlan +
        "[[model.init]]\nmatch = ['*.bias']\nkind = 'zeros'\n[[model.init]]\nmatch = ['*']\nkind = 'normal'\n"
        "std = 0.5\n");
    ASSERT_EQ(plan.model.init.size(), 2U);
    EXPECT_EQ(plan.model.init[0].match, std::vector<std::string>{"*.bias"});
    EXPECT_EQ(plan.model.init[1].kind, "normal");
    EXPECT_EQ(plan.model.init[1].std, 0.5);
    EXPECT_TRUE(holds(plan.resolved_text, "[[model.init]]\nmatch = [\"*\"]\nkind = \"normal\"\n"))
        << plan.resolved_text;
    EXPECT_TRUE(holds(problem_of(kShortPlan + "[[model.init]]\nx = 1\n"), "unknown key 'x'"));
}

TEST(Reader, OverridesAreCheckedLikeLines) {
    EXPECT_EQ(plan_of_text(kShortPlan, {"pipeline.schedule_type=GPIPE"}).pipeline.schedule_type, "GPIPE");
    EXPECT_EQ(plan_of_text(kShortPlan, {"train.steps=7", "train.steps=8"}).train.steps, 8);
    EXPECT_EQ(plan_of_text(kShortPlan, {"loss.kind=mse", "loss.target=y"}).loss->target, "y");
    EXPECT_EQ(problem_of(kShortPlan, {"train.stps=5"}),
              "--set:1:7: unknown key 'stps' in [train]; did you mean 'steps'?\n    train.stps=5\n          ^");
    EXPECT_TRUE(holds(problem_of(kShortPlan, {"train.steps=many"}), "--set:1:13: train.steps has the wrong type"));
    EXPECT_TRUE(holds(problem_of(kShortPlan, {"optimizer.group[0].lr=1"}), "optimizer.group is not a list"));
}

TEST(Reader, OverridesCanMendAPlan) {
    EXPECT_NO_THROW(plan_of_text(kShortPlan + "[mesh]\nthreads = 0\n", {"mesh.threads=1"}));
    EXPECT_NO_THROW(plan_of_text("", {"model.file=m.pt", "data.kind=text"}));
}

/// A value that the key accepts, as it would stand in an argument.
std::string sample_argument(const Key& key) {
    const Names names = built_names();
    switch (key.type) {
        case KeyType::Boolean:
            return "true";
        case KeyType::Integer:
            return key.range.contains(1) ? "1" : std::to_string(static_cast<int64_t>(key.range.low));
        case KeyType::Number:
            return "0.5";
        case KeyType::Size:
            return "1.5";
        case KeyType::Choice:
        case KeyType::Name:
            return usable_words(key, names).back();
        case KeyType::TextList:
            return "[\"w\"]";
        case KeyType::IntegerList:
            return "[2, 3]";
        case KeyType::NumberList:
            return "[0.5, 0.25]";
        case KeyType::Files:
        case KeyType::TextTable:
            return "{ w = \"v\" }";
        default:
            return "w";
    }
}

TEST(Reader, EveryKeyCanBeSet) {
    const std::string tables =
        "[loss]\nkind = 'mse'\ntarget = 'y'\n[[optimizer.group]]\nmatch = ['a']\n"
        "[[model.init]]\nmatch = ['a']\nkind = 'normal'\n[[data.transform]]\nfield = 'x'\n"
        "[[pipeline.stage]]\nname = 'a'\ninputs = ['x']\noutputs = ['y']\n";
    for (const Key& key : all_keys()) {
        std::string path = key.name;
        for (const std::string list : {"data.transform", "model.init", "optimizer.group", "pipeline.stage"}) {
            if (path.starts_with(list + '.')) path.insert(list.size(), "[0]");
        }
        if (key.type == KeyType::TableList) continue;
        const std::string value = path == "run.deadline_factor" ? "2.5" : sample_argument(key);
        const Plan plan = plan_of_text(kShortPlan + tables, {path + '=' + value});
        EXPECT_EQ(plan.positions.at(path).source, "--set") << path;
    }
}

TEST(Reader, HostileTextsAreRefusedQuickly) {
    using namespace std::string_literals;
    const std::clock_t start = std::clock();  // of this process: others may keep it waiting
    const std::vector<std::pair<std::string, std::string>> cases = {
        {repeated("a.", 100'000) + "b = 1", "too many dots"},
        {"[" + repeated("a.", 100'000) + "b]", "too many dots"},
        {"x = " + repeated("[", 10'000), "nested too deeply"},
        {"x = " + repeated("{a=", 10'000), "nested too deeply"},
        {std::string(2 << 20, 'x'), "too large"},
        {"a = \"\0\""s, "control characters"},
        {"a = \"\xff\"", "not UTF-8"},
        {"\"a\\u0007b\" = 1", "unknown key 'a?b'"},
        {"[data]\nkind = \"a\\u001b[2J\"", "'a?[2J'"},
        {repeated("[a]\n", 100'000), "not TOML"},
        {repeated("x", 1'000'000) + " = 1", "unknown key"},
        {"a = " + std::string(1'000'000, '9'), "not TOML"},
    };
    for (const auto& [text, message] : cases) EXPECT_TRUE(holds(problem_of(text), message)) << message;
    std::string many;
    for (int i = 0; i < 9'000; ++i) many += "k" + std::to_string(i) + " = 1\n";
    const Error error = error_of([&] { plan_of_text(many); });
    EXPECT_EQ(error.problems().size(), 101U);
    EXPECT_TRUE(holds(error.what(), "more problems"));
    EXPECT_LT((std::clock() - start) / CLOCKS_PER_SEC, 20);
}

// What passes the bounds must not overflow the stack either.
TEST(Reader, TheDeepestTextWithinTheBoundsIsRead) {
    std::string text = "x = ";
    for (int i = 0; i < 8; ++i) text += "[\n{" + repeated("a.", 50) + "b = ";
    text += "1" + repeated("}]", 8);
    EXPECT_TRUE(holds(problem_of(text), "unknown key 'x'"));
}

TEST(Reader, FilesAreRead) {
    const std::string folder = testing::TempDir();
    const std::string path = folder + "vpp_reader_test.toml";
    std::ofstream(path) << kShortPlan;
    const Plan plan = load_plan(path, {}, built_names());
    EXPECT_EQ(plan.name, "vpp_reader_test");
    EXPECT_EQ(plan.model.file, folder + "model.pt");
    std::ofstream(path) << std::string(2 << 20, '#');
    EXPECT_EQ(error_of([&] { load_plan(path, {}, built_names()); }).kind(), ErrorKind::Plan);
    std::filesystem::remove(path);
    EXPECT_EQ(error_of([&] { load_plan(path, {}, built_names()); }).kind(), ErrorKind::MissingInput);
    EXPECT_EQ(error_of([&] { load_plan(folder, {}, built_names()); }).kind(), ErrorKind::Plan);
}

TEST(Reader, TheNameOfAPlanIsAPlainName) {
    EXPECT_EQ(parse_plan(kShortPlan, "...toml", {}, built_names()).name, "plan");
    EXPECT_EQ(parse_plan(kShortPlan, "a/b.c.toml", {}, built_names()).name, "b.c");
    EXPECT_EQ(parse_plan(kShortPlan, "gr\xc3\xbc\xc3\x9f.toml", {}, built_names()).name, "gr\xc3\xbc\xc3\x9f");
    EXPECT_EQ(parse_plan(kShortPlan, "pl\xfe.toml", {}, built_names()).name, "plan");
}

// The block of the design's section on the plan: accepted, or refused by name.
const std::string kDesignPlan = R"([model]
file    = "../models/out/gpt_tiny.pt"
inputs  = ["tokens", "targets"]
loss_output = 0
loss_reduction = "mean"
[data]
kind    = "tokens"
train   = ["stdlib.bin"]
val     = ["stdlib_val.bin"]
sequence_length = 128
shuffle = true
[mesh]
pp = 4
dp = 1
tp = 1
device = "auto"
threads = 1
[pipeline]
mode            = "GRAPH_EAGER"
split_method    = "FLOPS"
num_stages      = 4
virtual_chunks  = 2
split_points    = []
uniform_split_ops = false
smallest_unsplittable_units = ["Block"]
schedule_type   = "INTERLEAVED_1F1B"
schedule_file   = ""
num_microbatches = 8
overlap_p2p_comm = true
forward_only    = false
tied_gradients  = "exact"
deferred_batch_norm = false
[pipeline.recompute]
what = "none"
[optimizer]
kind = "adamw"
lr = 3e-4
weight_decay = 0.1
clip_norm = 1.0
[[optimizer.group]]
match = ["*.bias", "*ln*"]
weight_decay = 0.0
[lr_schedule]
kind = "cosine"
warmup_steps = 20
[train]
steps = 200
global_batch_size = 32
seed = 1234
precision = "fp32"
eval_every = 50
[run]
dir = "runs/gpt"
[checkpoint]
every = 50
keep = 3
resume = "auto"
[report]
every = 10
)";

TEST(Reader, TheDesignsOwnPlanIsAccepted) {
    const Plan plan = resolve_plan(plan_of_text(kDesignPlan), 4);
    EXPECT_EQ(plan.train.global_batch_size, 32);
}

TEST(Reader, TheDesignsOtherWordsAreAcceptedOrRefusedByName) {
    const std::vector<std::pair<std::string, std::vector<std::string>>> words = {
        {"pipeline.mode", {"GRAPH_EAGER", "MANUAL_EAGER"}},
        {"pipeline.split_method", {"MANUAL", "UNIFORM", "PARAMETERS", "FLOPS", "AUTO"}},
        {"pipeline.schedule_type",
         {"GPIPE", "1F1B", "SIMPLE_1F1B", "EAGER_1F1B", "INTERLEAVED_1F1B", "LOOPED_BFS", "ZERO_BUBBLE_H1",
          "ZERO_BUBBLE_H2", "ZERO_BUBBLE_GREEDY", "INTERLEAVED_ZERO_BUBBLE", "ZERO_BUBBLE_V", "ZERO_BUBBLE", "V_HALF",
          "V_MIN", "V_ADAPTIVE", "DUALPIPE_V", "CUSTOM", "AUTO"}},
        {"data.kind", {"tokens", "text", "arrays", "idx", "cifar10", "synthetic"}},
        {"model.loss_reduction", {"mean", "sum", "target_mean"}},
        {"loss.kind", {"cross_entropy", "mse", "nll", "bce_with_logits", "l1"}},
        {"mesh.device", {"auto", "cpu", "cuda"}},
        {"mesh.transport", {"auto", "mpi", "nccl"}},
        {"pipeline.tied_gradients", {"exact", "per_step"}},
        {"pipeline.virtual_chunks", {"2", "auto"}},
        {"pipeline.recompute.what", {"none", "stage", "units", "modules"}},
        {"optimizer.kind", {"adamw", "adam", "sgd"}},
        {"lr_schedule.kind", {"constant", "linear", "cosine", "inverse_sqrt", "wsd", "step"}},
        {"train.precision", {"fp32", "bf16", "fp16"}},
        {"checkpoint.resume", {"auto", "no", "runs/x/checkpoints/1"}},
    };
    for (const auto& [key, values] : words) {
        for (const std::string& value : values) {
            std::vector<std::string> arguments = {key + '=' + value};
            if (key.starts_with("loss.")) arguments.push_back("loss.target=y");
            const Error error = error_of([&, &shown = arguments] { plan_of_text(kDesignPlan, shown); });
            const std::string text = error.what();
            const bool accepted = text == "no error";
            const bool refused = holds(text, " is not built yet") || holds(text, "is not compiled in");
            EXPECT_TRUE(accepted || refused) << text;
            EXPECT_FALSE(holds(text, "does not know")) << text;
        }
    }
}

}  // namespace
}  // namespace vpp
