#include "schedule/measured_trace.hpp"

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "unit/schedule/measured_support.hpp"

namespace vpp {
namespace {

using nlohmann::json;
using testing::lowered_schedule;
using testing::measured;

struct Arrow {
    json from, to;
    double microseconds() const { return to.at("ts").get<double>() - from.at("ts").get<double>(); }
};

std::map<std::string, Arrow> arrows_of(const json& events) {
    std::map<std::string, Arrow> arrows;
    for (const json& event : events) {
        if (event.at("ph") == "s") arrows[event.at("id")].from = event;
        if (event.at("ph") == "f") arrows[event.at("id")].to = event;
    }
    return arrows;
}

json measured_events_of(const Schedule& lowered, const MeasuredStep& step) {
    return json::parse(write_measured_trace(lowered, step)).at("traceEvents");
}

/// Whether an end of an arrow lies in an event of its own thread.
bool is_inside_an_event(const json& events, const json& end) {
    for (const json& event : events) {
        if (event.at("ph") != "X" || event.at("pid") != end.at("pid") || event.at("tid") != end.at("tid")) continue;
        const double begin = event.at("ts"), duration = event.at("dur"), at = end.at("ts");
        if (begin <= at && at <= begin + duration && event.at("cat") != "step") return true;
    }
    return false;
}

TEST(WriteMeasuredTrace, ALaneForEachStageOfEachRank) {
    const Schedule lowered = lowered_schedule("INTERLEAVED_1F1B", 2, 2, 4);
    std::map<int, std::string> processes;
    std::map<std::pair<int, int>, std::string> threads;
    for (const json& event : measured_events_of(lowered, measured(lowered))) {
        if (event.at("name") == "process_name") processes[event.at("pid")] = event.at("args").at("name");
        if (event.at("name") == "thread_name")
            threads[{event.at("pid"), event.at("tid")}] = event.at("args").at("name");
    }
    EXPECT_EQ(processes, (std::map<int, std::string>{{0, "rank 0"}, {1, "rank 1"}}));
    EXPECT_EQ(threads, (std::map<std::pair<int, int>, std::string>{{{0, 0}, "step"},
                                                                   {{0, 1}, "stage 0"},
                                                                   {{0, 3}, "stage 2"},
                                                                   {{1, 0}, "step"},
                                                                   {{1, 2}, "stage 1"},
                                                                   {{1, 4}, "stage 3"}}));
}

/// "name, lane, begin, duration" of the events of a category; all of them are rank 0's.
std::set<std::string> data_events(const json& events, const std::string& category) {
    std::map<int, std::string> lanes;
    for (const json& event : events) {
        if (event.at("name") == "thread_name" && event.at("pid") == 0)
            lanes[event.at("tid")] = event.at("args").at("name");
    }
    std::set<std::string> found;
    for (const json& event : events) {
        if (event.at("ph") != "X" || event.at("cat") != category) continue;
        EXPECT_EQ(event.at("pid"), 0);
        found.insert(event.at("name").get<std::string>() + ", " + lanes[event.at("tid")] + ", " +
                     event.at("ts").dump() + ", " + event.at("dur").dump());
    }
    return found;
}

TEST(WriteMeasuredTrace, ReadingDataAndWaitingForItHaveLanesOfTheirOwn) {
    const Schedule lowered = lowered_schedule("1F1B", 2, 1, 2);
    MeasuredStep step = measured(lowered);
    const int64_t begin = step.begin();
    for (size_t i = 0; i < lowered.actions[0].size(); ++i) {
        if (lowered.actions[0][i].kind == ActionKind::F) step.ranks[0].actions[i].load = 250'000;
    }
    step.ranks[0].reads = {{begin - 2'000'000, begin - 1'000'000, 11, 0, 0},
                           {begin - 1'000'000, begin + 500'000, 11, 1, 0},
                           {begin + 500'000, begin + 2'000'000, 12, 0, 0}};
    const json events = measured_events_of(lowered, step);
    EXPECT_EQ(data_events(events, "wait"), (std::set<std::string>{"wait 0, waiting for data, 0.0, 250.0",
                                                                  "wait 1, waiting for data, 1000.0, 250.0"}));
    EXPECT_EQ(data_events(events, "read"),
              (std::set<std::string>{"read 1, reading data, 0.0, 500.0", "read 0, reading data, 500.0, 1500.0"}))
        << "what ended before the step is not in it";
    for (const json& event : events) {
        if (event.at("name") == "read 0") {
            EXPECT_EQ(event.at("args"), (json{{"step", 13}, {"microbatch", 0}, {"input", 0}}));
        }
    }
}

TEST(WriteMeasuredTrace, EveryActionIsAnEventAtItsTime) {
    const Schedule lowered = lowered_schedule("1F1B", 2, 1, 2);
    const MeasuredStep step = measured(lowered);
    std::set<std::string> names;
    size_t num_actions = 0;
    for (const json& event : measured_events_of(lowered, step)) {
        if (event.at("ph") != "X") continue;
        EXPECT_GE(event.at("ts"), 0);
        EXPECT_GE(event.at("dur"), 0);
        if (event.at("cat") == "step") continue;
        ++num_actions;
        names.insert(event.at("name").get<std::string>() + " of rank " + std::to_string(event.at("pid").get<int>()));
        if (event.at("name") == "F 1" && event.at("pid") == 0) {
            EXPECT_EQ(event.at("ts"), 1000);
            EXPECT_EQ(event.at("dur"), 1000);
            EXPECT_EQ(event.at("args").at("microbatch"), 1);
        }
    }
    EXPECT_EQ(num_actions, lowered.actions[0].size() + lowered.actions[1].size());
    for (const char* name : {"F 0 of rank 0", "RECV_F 1 of rank 1", "SEND_B 0 of rank 1"}) {
        EXPECT_TRUE(names.contains(name)) << name;
    }
}

TEST(WriteMeasuredTrace, ACardHasLanesOfItsOwn) {
    const Schedule lowered = lowered_schedule("1F1B", 2, 1, 2);
    MeasuredStep step = measured(lowered);
    const auto lanes = [&] {
        std::map<std::string, int> count;  // by rank and lane; its events
        const json events = measured_events_of(lowered, step);
        for (const json& name : events) {
            if (name.at("name") != "thread_name") continue;
            const auto is_there = [&](const json& event) {
                return event.value("cat", "") == "card" && event.at("pid") == name.at("pid") &&
                       event.at("tid") == name.at("tid");
            };
            const auto num_events = std::count_if(events.begin(), events.end(), is_there);
            const std::string rank = std::to_string(name.at("pid").get<int>());
            if (num_events > 0) {
                count[rank + ' ' + name.at("args").at("name").get<std::string>()] = static_cast<int>(num_events);
            }
        }
        return count;
    };
    EXPECT_TRUE(lanes().empty()) << "nothing is known of a card";
    // The card of rank 1 does all a millisecond later, but what goes by the host.
    for (size_t i = 0; i < lowered.actions[1].size(); ++i) {
        ActionSpan& span = step.ranks[1].actions[i];
        if (lowered.actions[1][i].kind == ActionKind::SendB) continue;
        span.device_begin = span.begin + 1'000'000;
        span.device_end = span.end + 1'000'000;
    }
    EXPECT_EQ(lanes(), (std::map<std::string, int>{{"1 card: computing", 4}, {"1 card: RECV_F from PP 0", 2}}));
    for (const json& event : measured_events_of(lowered, step)) {
        if (event.value("cat", "") == "card" && event.at("name") == "F 0") {
            EXPECT_EQ(event.at("ts"), 2000);
            EXPECT_EQ(event.at("dur"), 1000);
            EXPECT_EQ(event.at("args"), (json{{"stage", 1}, {"microbatch", 0}}));
        }
    }
}

TEST(WriteMeasuredTrace, EverySendHasOneArrowToItsReceive) {
    const Schedule lowered = lowered_schedule("1F1B", 3, 1, 4);
    const json events = measured_events_of(lowered, measured(lowered, 1'000'000, 0, 500));
    const auto arrows = arrows_of(events);
    EXPECT_EQ(arrows.size(), 16U);
    for (const auto& [id, arrow] : arrows) {
        ASSERT_TRUE(!arrow.from.is_null() && !arrow.to.is_null()) << id;
        EXPECT_EQ(arrow.from.at("name"), arrow.to.at("name"));
        EXPECT_NE(arrow.from.at("pid"), arrow.to.at("pid"));
        EXPECT_GE(arrow.microseconds(), 0) << id;
        EXPECT_TRUE(is_inside_an_event(events, arrow.from)) << id;
        EXPECT_TRUE(is_inside_an_event(events, arrow.to)) << id;
    }
}

TEST(WriteMeasuredTrace, ReplicasHaveArrowsOfTheirOwn) {
    const Schedule lowered = lowered_schedule("1F1B", 2, 1, 4);
    MeasuredStep step = measured(lowered);
    for (int pp = 0; pp < 2; ++pp) step.ranks.push_back(step.ranks[static_cast<size_t>(pp)]), step.ranks.back().dp = 1;
    const json events = measured_events_of(lowered, step);
    EXPECT_EQ(arrows_of(events).size(), 16U);
    EXPECT_NE(events.dump().find("rank 3, replica 1"), std::string::npos);
}

TEST(WriteMeasuredTrace, ClocksThatWereNotAlignedWouldShow) {  // the negative control of the arrows
    const Schedule lowered = lowered_schedule("1F1B", 2, 1, 4);
    MeasuredStep step = measured(lowered);
    for (ActionSpan& span : step.ranks[1].actions) span.begin -= 2'500'000, span.end -= 2'500'000;
    int backwards = 0;
    for (const auto& [id, arrow] : arrows_of(measured_events_of(lowered, step)))
        backwards += arrow.microseconds() < 0 ? 1 : 0;
    EXPECT_GT(backwards, 0);
}

TEST(WriteMeasuredTrace, SaysWhatItIsAndHowSure) {
    const Schedule lowered = lowered_schedule("1F1B", 2, 1, 2);
    MeasuredStep step = measured(lowered);
    step.clock_error = 12'500;
    const json other = json::parse(write_measured_trace(lowered, step)).at("otherData");
    EXPECT_EQ(other, (json{{"step", 12}, {"schedule", "1F1B"}, {"clock_error_ms", 0.0125}}));
}

}  // namespace
}  // namespace vpp
