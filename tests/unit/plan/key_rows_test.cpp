#include "plan/key_rows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace vpp {
namespace {

TEST(KeyRows, NamesAreUniqueAndSectionsStandTogether) {
    std::set<std::string> names, closed;
    std::string section;
    for (const Key& key : all_keys()) {
        EXPECT_TRUE(names.insert(key.name).second) << key.name;
        const std::string top = key.name.substr(0, key.name.find('.'));
        if (top == section) continue;
        EXPECT_TRUE(closed.insert(top).second) << top << " is split";
        section = top;
    }
    EXPECT_GT(names.size(), 100U);
}

TEST(KeyRows, EveryRowSaysWhatItIs) {
    for (const Key& key : all_keys()) {
        EXPECT_TRUE(key.sentence.ends_with('.')) << key.name;
        EXPECT_FALSE(type_text(key.type).empty()) << key.name;
        EXPECT_FALSE(default_text(key).empty()) << key.name;
        EXPECT_EQ(key.field.get != nullptr, key.field.set != nullptr) << key.name;
        EXPECT_EQ(key.type != KeyType::TableList, key.field.set != nullptr) << key.name;
        EXPECT_EQ(key.type == KeyType::Choice, !key.choices.empty()) << key.name;
        EXPECT_EQ(key.type == KeyType::Name, key.names != nullptr) << key.name;
        const bool is_list = key.type == KeyType::NumberList || key.type == KeyType::IntegerList;
        EXPECT_TRUE(is_list || key.list_size == 0) << key.name;
        EXPECT_TRUE(key.word.empty() || key.type == KeyType::Integer) << key.name;
    }
}

TEST(KeyRows, DefaultsLieInTheirRangesAndWords) {
    for (const Key& key : all_keys()) {
        const auto value = default_value(key);
        if (!value) continue;
        if (const auto* integer = std::get_if<int64_t>(&*value); integer && key.type == KeyType::Integer) {
            EXPECT_TRUE(key.range.contains(static_cast<double>(*integer))) << key.name;
        }
        if (const auto* number = std::get_if<double>(&*value)) {
            EXPECT_TRUE(key.range.contains(*number)) << key.name;
        }
        if (key.type == KeyType::Choice) {
            EXPECT_NE(std::ranges::find(key.choices, std::get<std::string>(*value)), key.choices.end()) << key.name;
        }
    }
}

// Of one byte each there would be millions.
TEST(KeyRows, BucketsHaveALeastSize) {
    EXPECT_FALSE(find_key("mesh.bucket_bytes")->range.contains(1023));
    EXPECT_TRUE(find_key("mesh.bucket_bytes")->range.contains(1024));
}

TEST(KeyRows, EachKeyReachesItsOwnField) {
    // A value put in through one row must come out of that row and change no other.
    for (const Key& key : all_keys()) {
        if (!key.field.set) continue;
        Plan plan;
        plan.loss.emplace();
        plan.model.init.resize(1);
        if (key.name == "model.init.mean" || key.name == "model.init.std") plan.model.init[0].kind = "normal";
        if (key.name == "model.init.low" || key.name == "model.init.high") plan.model.init[0].kind = "uniform";
        plan.optimizer.groups.resize(1);
        plan.pipeline.stages.resize(1);
        plan.data.transforms.resize(1);
        std::vector<std::optional<Value>> before;
        for (const Key& other : all_keys()) before.push_back(other.field.get ? other.field.get(plan, 0) : std::nullopt);
        Value value = std::string("w");
        if (key.type == KeyType::Boolean) value = !std::get<bool>(*key.field.get(plan, 0));
        if (key.type == KeyType::Integer) value = int64_t{77};
        if (key.type == KeyType::Number || key.type == KeyType::Size) value = 0.625;
        if (key.type == KeyType::TextList) value = std::vector<std::string>{"w"};
        if (key.type == KeyType::IntegerList) value = std::vector<int64_t>{7, 8};
        if (key.type == KeyType::NumberList) value = std::vector<double>{0.25, 0.5};
        if (key.type == KeyType::Files || key.type == KeyType::TextTable) value = NamedTexts{{"n", "w"}};
        key.field.set(plan, 0, value);
        // With [loss] the loss output has no value.
        if (key.name != "model.loss_output") {
            EXPECT_EQ(key.field.get(plan, 0), value) << key.name;
        }
        for (size_t i = 0; i < before.size(); ++i) {
            const Key& other = all_keys()[i];
            if (!other.field.get || other.name == key.name) continue;
            EXPECT_EQ(other.field.get(plan, 0), before[i]) << key.name << " changed " << other.name;
        }
    }
}

TEST(KeyRows, NumbersThatMayBeTextsKeepWhichTheyAre) {
    const auto round_trip = [](const char* name, const Value& value) {
        Plan plan;
        find_key(name)->field.set(plan, 0, value);
        return *find_key(name)->field.get(plan, 0);
    };
    EXPECT_EQ(round_trip("pipeline.virtual_chunks", std::string("auto")), Value(std::string("auto")));
    EXPECT_EQ(round_trip("pipeline.memory_limit", 2.5), Value(2.5));
    EXPECT_EQ(round_trip("pipeline.memory_limit", std::string("2048 MiB")), Value(std::string("2GiB")));
    Plan plan;
    find_key("pipeline.virtual_chunks")->field.set(plan, 0, std::string("auto"));
    find_key("pipeline.virtual_chunks")->field.set(plan, 0, int64_t{3});
    EXPECT_FALSE(plan.pipeline.choose_virtual_chunks) << "the last one counts";
}

}  // namespace
}  // namespace vpp
