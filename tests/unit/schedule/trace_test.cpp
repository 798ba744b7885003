#include "schedule/trace.hpp"

#include <nlohmann/json.hpp>

#include <map>

#include "schedule/generators.hpp"
#include "unit/schedule/support.hpp"

namespace vpp {
namespace {

using nlohmann::json;

json events_of(const Schedule& lowered, const ScheduleCosts& costs = {}) {
    return json::parse(write_trace(lowered, costs)).at("traceEvents");
}

TEST(WriteTrace, EveryActionIsAnEventAtItsTime) {
    const Schedule compute = make_schedule("1F1B", 2, 1, 2);
    const Schedule lowered = lower(compute, chain_edges(2));
    const Simulation simulation = simulate(lowered);
    std::map<std::string, json> by_name;
    for (const json& event : events_of(lowered)) {
        if (event.at("ph") == "X") by_name[event.at("name")] = event;
    }
    EXPECT_EQ(by_name.size(), 8U);
    for (size_t rank = 0; rank < 2; ++rank) {
        for (size_t i = 0; i < lowered.actions[rank].size(); ++i) {
            const Action& action = lowered.actions[rank][i];
            if (is_transfer(action.kind)) continue;
            const json& event = by_name.at(to_text(action));
            EXPECT_EQ(event.at("ts"), 1000.0 * static_cast<double>(simulation.times[rank][i].start));
            EXPECT_EQ(event.at("dur"), action.kind == ActionKind::F ? 1000.0 : 2000.0);
            EXPECT_EQ(event.at("tid"), 2 * rank);
            EXPECT_EQ(event.at("args").at("microbatch"), action.microbatch);
        }
    }
}

TEST(WriteTrace, EveryMessageIsAnArrowFromItsSendToItsReceive) {
    const Schedule lowered = lower(make_schedule("1F1B", 3, 1, 4), chain_edges(3));
    std::map<std::string, std::pair<double, double>> arrows;
    int num_ends = 0;
    for (const json& event : events_of(lowered)) {
        if (event.at("ph") == "s") arrows[event.at("id")].first = event.at("ts"), ++num_ends;
        if (event.at("ph") == "f") arrows[event.at("id")].second = event.at("ts"), ++num_ends;
    }
    EXPECT_EQ(arrows.size(), 16U);
    EXPECT_EQ(num_ends, 32);
    for (const auto& [id, arrow] : arrows) EXPECT_LE(arrow.first, arrow.second) << id;
}

TEST(WriteTrace, UnitsAreMilliseconds) {
    ScheduleCosts costs;
    costs.stages = {{15, 20, 0, 0}};
    costs.ticks_per_unit = 10;
    const json events = events_of(make_schedule("GPIPE", 1, 1, 1), costs);
    EXPECT_EQ(events.at(1).at("dur"), 1500);
    EXPECT_EQ(events.at(2).at("ts"), 1500);
}

TEST(WriteTrace, ThreadsAreRanksAndSecondHalvesHaveTheirOwn) {
    Schedule pair{"CUSTOM \"x\"", 1, 2, {0}, {}, false};
    pair.actions = {
        {{ActionKind::F, 0, 0}, {ActionKind::F, 0, 1, -1, -1, true}, {ActionKind::B, 0, 0}, {ActionKind::B, 0, 1}}};
    std::map<int, std::string> threads;
    for (const json& event : events_of(pair)) {
        if (event.at("ph") == "M") threads[event.at("tid")] = event.at("args").at("name");
        if (event.at("ph") != "X") continue;
        EXPECT_EQ(event.at("tid"), event.at("name") == "0B0" ? 1 : 0);
    }
    EXPECT_EQ(threads, (std::map<int, std::string>{{0, "rank 0"}, {1, "rank 0, overlapped"}}));
}

}  // namespace
}  // namespace vpp
