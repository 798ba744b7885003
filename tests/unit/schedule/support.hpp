#pragma once
// What the tests of schedules share: schedules from text, errors as text, edges at random.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/random.hpp"
#include "schedule/checker.hpp"
#include "schedule/edges.hpp"
#include "schedule/lowering.hpp"
#include "schedule/simulator.hpp"

namespace vpp::testing {

/// The texts of every rank's list.
inline std::vector<std::string> texts(const Schedule& schedule) {
    std::vector<std::string> lists;
    for (const std::vector<Action>& list : schedule.actions) lists.push_back(to_text(list));
    return lists;
}

/// The text of the Error{kind} that `call` throws; empty and a failed test when it throws none or another.
inline std::string error_text(ErrorKind kind, const std::function<void()>& call) {
    try {
        call();
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), kind) << error.what();
        return error.what();
    }
    ADD_FAILURE() << "no error was thrown";
    return "";
}

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

/// Lowers over a model without skips, proves and simulates.
struct Proved {
    Schedule lowered;
    ScheduleFacts facts;
    Simulation simulation;
};

inline Proved prove(const Schedule& compute, const std::vector<ScheduleEdge>& edges, const ScheduleCosts& costs = {}) {
    Proved proved{lower(compute, edges), {}, {}};
    proved.facts = check_schedule(proved.lowered, edges);
    proved.simulation = simulate(proved.lowered, costs);
    return proved;
}

inline Proved prove(const Schedule& compute, const ScheduleCosts& costs = {}) {
    return prove(compute, chain_edges(compute.num_stages()), costs);
}

/// Values with one to three consumers among later stages, chains of gradients included; half of them without a chain
/// s -> s+1. A pure function of `seed`.
inline std::vector<ScheduleEdge> random_edges(int num_stages, uint64_t seed) {
    uint64_t key = mix64(seed);
    const auto draw = [&](int bound) { return static_cast<int>((key = mix64(key)) % static_cast<uint64_t>(bound)); };
    std::vector<ScheduleEdge> edges;
    if (draw(2) == 0) edges = chain_edges(num_stages);
    for (int value = 0; value < num_stages; ++value) {
        int user = draw(num_stages);
        const int num_consumers = 1 + draw(3);
        const bool has_gradient = draw(4) != 0;
        const int producer = user;
        for (int k = 0; k < num_consumers && user + 1 < num_stages; ++k) {
            const int consumer = user + 1 + draw(num_stages - user - 1);
            edges.push_back({static_cast<int>(edges.size()), producer, consumer, has_gradient, user});
            user = consumer;
        }
    }
    return edges;
}

}  // namespace vpp::testing
