#include "plan/key_facts.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "plan/value_reader.hpp"
#include "unit/plan/plan_texts.hpp"

namespace vpp {
namespace {

using test::built_names;

std::string fact(const char* name, const std::string& label) {
    for (const Fact& one : key_facts(*find_key(name), built_names())) {
        if (one.label == label) return one.text;
    }
    return "";
}

/// The value that the reader makes of a TOML text; nothing when it finds anything wrong.
std::optional<Value> value_in(const Key& key, const std::string& toml) {
    Problems problems;
    const auto node = parse_value(toml, {0, 1, 1});
    const auto value = node ? read_value(key, key.name, *node, built_names(), problems) : std::nullopt;
    return problems.empty() ? value : std::nullopt;
}

TEST(KeyFacts, SayWhatTheTableSays) {
    EXPECT_EQ(fact("pipeline.num_stages", "type"), "integer");
    EXPECT_EQ(fact("pipeline.num_stages", "default"), "mesh.pp");
    EXPECT_EQ(fact("pipeline.num_stages", "range"), "1 to 65536");
    EXPECT_EQ(fact("pipeline.virtual_chunks", "type"), "integer or \"auto\"");
    EXPECT_EQ(fact("optimizer.betas", "type"), "list of 2 numbers");
    EXPECT_EQ(fact("optimizer.betas", "range"), "at least 0 and below 1 each");
    EXPECT_EQ(fact("mesh.tp", "range"), "1; tensor parallelism is not built yet");
    EXPECT_EQ(fact("pipeline.schedule_type", "also"), "SIMPLE_1F1B = 1F1B, ZERO_BUBBLE = ZERO_BUBBLE_V");
    EXPECT_EQ(fact("loss.kind", "words"), "cross_entropy, mse, nll, bce_with_logits, l1");
    EXPECT_EQ(fact("mesh.device", "not yet"), "cuda (is not compiled in: VPP_CUDA)");
    EXPECT_EQ(fact("model.file", "needed"), "always, unless pipeline.stage is written");
    EXPECT_EQ(fact("optimizer.group.match", "needed"), "in each [[optimizer.group]]");
    EXPECT_EQ(fact("model.file", "default"), "");
}

TEST(KeyFacts, WordsThatAreThereAreNotCalledPlanned) {
    Names names = built_names();
    names.devices.emplace_back("cuda");
    const std::vector<Fact> facts = key_facts(*find_key("mesh.device"), names);
    EXPECT_TRUE(std::ranges::none_of(facts, [](const Fact& one) { return one.label == "not yet"; }));
}

TEST(KeyFacts, AnAliasThatIsRegisteredTooIsNamedOnce) {
    Names names = built_names();
    names.schedules.insert(names.schedules.begin(), "SIMPLE_1F1B");
    const Key& key = *find_key("pipeline.schedule_type");
    EXPECT_EQ(own_words(key, names), built_names().schedules);
    EXPECT_EQ(own_words(*find_key("loss.kind"), names), names.losses);
}

TEST(KeyFacts, EveryKeyHasAnExampleThatTheReaderTakes) {
    for (const Key& key : all_keys()) {
        const auto example = example_value(key, built_names());
        EXPECT_EQ(example.has_value(), key.type != KeyType::TableList) << key.name;
        if (example) {
            EXPECT_EQ(value_in(key, toml_text(*example)), example) << key.name << " = " << toml_text(*example);
        }
    }
}

TEST(KeyFacts, EveryDefaultIsReadBackAsItself) {
    int read_back = 0;
    for (const Key& key : all_keys()) {
        const auto value = default_value(key);
        if (!value) continue;
        EXPECT_EQ(value_in(key, toml_text(*value)), value) << key.name;
        ++read_back;
    }
    EXPECT_GT(read_back, 50);
}

TEST(KeyFacts, ExampleLinesStandInAPlanAsTheyAre) {
    const auto lines = [](const char* name, size_t columns) {
        return example_lines(*find_key(name), built_names(), columns);
    };
    EXPECT_EQ(lines("pipeline.num_stages", 80), (std::vector<std::string>{"num_stages = 4"}));
    EXPECT_EQ(lines("optimizer.group", 80),
              (std::vector<std::string>{"[[optimizer.group]]", "match = [\"*.bias\", \"*ln*\"]"}));
    EXPECT_EQ(lines("optimizer.group.match", 10),
              (std::vector<std::string>{"match = [", "  \"*.bias\",", "  \"*ln*\",", "]"}));
}

TEST(KeyFacts, SectionsAreThoseOfTheTableInItsOrder) {
    std::vector<std::string> of_keys, of_rows;
    for (const Key& key : all_keys()) {
        if (std::ranges::find(of_keys, section_of(key)) == of_keys.end()) of_keys.push_back(section_of(key));
    }
    for (const auto& [section, sentence] : all_sections()) {
        of_rows.push_back(section);
        EXPECT_TRUE(sentence.ends_with('.')) << section;
        EXPECT_EQ(section_sentence(section), sentence);
        EXPECT_FALSE(keys_of(section).empty()) << section;
    }
    EXPECT_EQ(of_rows, of_keys);
    EXPECT_EQ(section_sentence("pipelin"), "");
    EXPECT_EQ(section_header("pipeline.stage"), "[[pipeline.stage]]");
    EXPECT_EQ(section_header("pipeline.search"), "[pipeline.search]");
}

}  // namespace
}  // namespace vpp
