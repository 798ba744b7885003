#include "plan/foreign_keys.hpp"

#include <gtest/gtest.h>

#include <array>
#include <regex>
#include <set>

#include "plan/keys.hpp"

namespace vpp {
namespace {

/// "lr", "train.steps", "pipeline.recompute", "metrics.csv"
std::vector<std::string> names_in_answer(const std::string& answer) {
    static const std::regex kName("\\b([a-z_]+(?:\\.[a-z_0-9]+)+|lr|eps|betas|weight_decay)\\b");
    std::vector<std::string> names;
    for (std::sregex_iterator at(answer.begin(), answer.end(), kName), end; at != end; ++at) names.push_back((*at)[1]);
    return names;
}

bool is_in_a_plan(const std::string& name) {
    return find_key(name) || is_section(name) || find_key("optimizer." + name);
}

TEST(ForeignKeys, AnswersNameKeysThatThereAre) {
    for (const ForeignKeys& keys : foreign_keys()) {
        const std::vector<std::string> names = names_in_answer(keys.answer);
        EXPECT_TRUE(!names.empty() || keys.answer.starts_with("leave it out: ") ||
                    keys.answer == "did you mean [mesh] or [pipeline]?" || keys.answer == "did you mean section train?")
            << keys.answer;
        for (const std::string& name : names) {
            EXPECT_TRUE(is_in_a_plan(name) || name.starts_with("metrics.")) << name << " in: " << keys.answer;
        }
    }
}

TEST(ForeignKeys, NamesStandOnceAndAreNoKeys) {
    std::set<std::string_view> seen;
    for (const ForeignKeys& keys : foreign_keys()) {
        for (const std::string_view name : keys.names) {
            EXPECT_TRUE(seen.insert(name).second) << name;
            EXPECT_FALSE(is_section(name)) << name;
            EXPECT_FALSE(find_key(name)) << name;
            for (const Key& key : all_keys()) EXPECT_NE(last_part(key.name), name);
        }
    }
}

TEST(ForeignKeys, LeadToTheKey) {
    for (const auto& [name, meant] : std::vector<std::pair<std::string, std::string>>{
             {"batch_size", "train.global_batch_size"},
             {"micro_batch_size", "pipeline.num_microbatches"},
             {"max_steps", "train.steps"},
             {"num_epochs", "train.epochs"},
             {"gradient_accumulation_steps", "train.accumulate"},
             {"gradient_accumulation", "train.accumulate"},
             {"max_grad_norm", "optimizer.clip_norm"},
             {"gradient_clipping", "optimizer.clip_norm"},
             {"activation_checkpointing", "section pipeline.recompute"},
             {"zero", "mesh.zero1"},
             {"amp", "train.precision, as in precision = \"bf16\""},
             {"save_interval", "checkpoint.every"},
             {"learning_rate", "lr"},
             {"epsilon", "eps"},
             {"beta1", "betas, as in betas = [0.9, 0.999]"},
         }) {
        const std::string answer = foreign_key_answer(name), start = "did you mean " + meant + '?';
        EXPECT_TRUE(answer.starts_with(start)) << answer << ", expected " << start;
    }
    EXPECT_EQ(foreign_key_answer("scheduler"),
              "did you mean lr_schedule.kind, or pipeline.schedule_type, the order of work?");
    EXPECT_EQ(foreign_key_answer("world_size"),
              "leave it out: it is the number of ranks that start, as in vpp run -n 4; [mesh] says what they do");
    EXPECT_EQ(foreign_key_answer("shared_modules"), "leave it out: tied parameters are found in the model");
}

TEST(ForeignKeys, FullNamesAreKnownInTheirSection) {
    for (const auto& [section, name, meant] : std::vector<std::array<std::string, 3>>{
             {"optimizer", "name", "optimizer.kind"},
             {"optimizer", "Type", "optimizer.kind"},
             {"lr_schedule", "name", "lr_schedule.kind"},
             {"model", "name", "model.file"},
             {"loss", "type", "loss.kind"},
             {"data", "name", "data.kind"},
             {"data", "path", "data.train"},
             {"checkpoint", "interval", "checkpoint.every"},
         }) {
        const std::string answer = foreign_key_answer(name, section), start = "did you mean " + meant + '?';
        EXPECT_TRUE(answer.starts_with(start)) << answer << ", expected " << start;
        EXPECT_EQ(foreign_key_answer(name), "");
    }
    EXPECT_EQ(foreign_key_answer("folder", "checkpoint"),
              "leave it out: checkpoints lie in checkpoints/ below run.dir");
    EXPECT_EQ(foreign_key_answer("learning_rate", "optimizer"), foreign_key_answer("learning_rate"));
}

TEST(ForeignKeys, WordsForElementTypesAreKnown) {
    EXPECT_EQ(foreign_precision("bfloat16"), "bf16");
    EXPECT_EQ(foreign_precision("BF16-mixed"), "bf16");
    EXPECT_EQ(foreign_precision("float32"), "fp32");
    EXPECT_EQ(foreign_precision("half"), "fp16");
    EXPECT_EQ(foreign_precision("bf16"), "");
    EXPECT_EQ(foreign_precision(""), "");
}

TEST(ForeignKeys, AreKnownAsFlagsToo) {
    EXPECT_EQ(foreign_key_answer("--Micro-Batch-Size"), foreign_key_answer("micro_batch_size"));
    EXPECT_EQ(foreign_key_answer("num_stages"), "");
    EXPECT_EQ(foreign_key_answer("--"), "");
    EXPECT_EQ(foreign_key_answer(""), "");
}

}  // namespace
}  // namespace vpp
