#include "report/metrics.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <string>

#include "unit/report/support.hpp"

namespace vpp {
namespace {

std::optional<double> value_of(const std::vector<Reading>& readings, const std::string& tag) {
    for (const Reading& reading : readings) {
        if (tag == reading.name.tag) return reading.value;
    }
    ADD_FAILURE() << "no " << tag;
    return std::nullopt;
}

TEST(Metrics, AStepIsRead) {
    StepEvent event = test::sample_step();
    event.flops = 823;
    const std::vector<Reading> readings = vpp::readings(event);
    EXPECT_EQ(value_of(readings, "train/loss"), 3.14159);
    EXPECT_EQ(value_of(readings, "train/clipped"), 1);
    EXPECT_EQ(value_of(readings, "train/loss_scale"), std::nullopt);
    EXPECT_EQ(value_of(readings, "perf/step_s"), 82.3 / 1e3);
    EXPECT_EQ(value_of(readings, "perf/flops_per_s"), 823 / 82.3 * 1e3);
    EXPECT_EQ(value_of(readings, "perf/bubble_worst"), 0.354);
    EXPECT_EQ(value_of(readings, "perf/bubble_idle"), 0.25);
    EXPECT_EQ(value_of(readings, "perf/bubble_predicted"), 0.2);
    EXPECT_EQ(value_of(readings, "memory/resident_bytes"), 412 << 20);
}

TEST(Metrics, TheFullestRankCounts) {
    const MemoryEvent event{2, {{30, 1, 0, 0}, {40, 24, 0, 0}}};
    EXPECT_EQ(value_of(readings(event), "memory/state_bytes"), 40);
    EXPECT_EQ(value_of(readings(MemoryEvent{}), "memory/state_bytes"), std::nullopt);
}

TEST(Metrics, NamesAreUniqueAndFitTheirPrograms) {
    std::set<std::string> tags, gauges;
    for (const MetricName& name : metric_names()) {
        EXPECT_TRUE(tags.insert(name.tag).second) << name.tag;
        EXPECT_TRUE(gauges.insert(name.gauge).second) << name.gauge;
        for (const char c : std::string(name.tag)) EXPECT_TRUE(std::islower(c) || c == '_' || c == '/') << name.tag;
        for (const char c : std::string(name.gauge)) EXPECT_TRUE(std::islower(c) || c == '_') << name.gauge;
        EXPECT_EQ(std::string(name.gauge).rfind("vpp_", 0), 0u);
    }
    EXPECT_EQ(metric_names().size(), readings(StepEvent{}).size() + readings(EvalEvent{}).size() +
                                         readings(SaveEvent{}).size() + readings(MemoryEvent{}).size());
}

}  // namespace
}  // namespace vpp
