#pragma once
// What the actions of a schedule cost. Times are whole ticks, so that sums are exact and the same on every machine:
// closed forms hold without a tolerance, and a search finds the same order everywhere.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "schedule/action.hpp"
#include "schedule/size.hpp"

namespace vpp {

struct Schedule;

using Ticks = int64_t;

/// What costs promise less than this part of a step, measured steps may not show.
inline constexpr double kWorthwhileGain = 0.03;

/// What one stage costs for one microbatch.
struct StageCosts {
    Ticks forward = 1;          ///< F
    Ticks backward = 2;         ///< B
    Ticks input_gradient = 1;   ///< I
    Ticks weight_gradient = 1;  ///< W

    /// Zero for what does not compute.
    Ticks of(ActionKind kind) const;
};

/// The costs of a whole schedule. The default is unit costs: F = I = W = 1, B = 2, free transfers.
struct ScheduleCosts {
    std::vector<StageCosts> stages;    ///< by stage; empty = unit costs for all
    Ticks transfer = 0;                ///< from SEND to the end of RECV, where the channel is free
    std::map<int, Ticks> transfer_of;  ///< by edge id, where it differs
    /// The first part of a transfer, its bytes / bandwidth, in which it occupies its channel (from one rank to
    /// another): the next message of the channel waits for so long. The rest is latency, which is beside each other.
    Ticks occupied = 0;
    std::map<int, Ticks> occupied_of;  ///< by edge id, where it differs
    int overlap_percent = 0;           ///< how much of the shorter half of an OVERLAP_F_B runs beside the longer
    double ticks_per_unit = 1;         ///< the unit that the costs were given in

    StageCosts of_stage(int stage) const;
    Ticks of_transfer(int edge) const;
    Ticks of_occupied(int edge) const;
    /// Whether messages of a channel wait for each other at all.
    bool has_channels() const { return occupied > 0 || !occupied_of.empty(); }
    /// What F and B take together as an OVERLAP_F_B pair.
    Ticks of_pair(const Action& forward, const Action& backward) const;
    double units(Ticks ticks) const { return static_cast<double>(ticks) / ticks_per_unit; }
};

/// Costs from text: "F=1,I=1,W=1,comm=0.1,transfer=0.05". Times are those of a full rank, shared evenly by its stages,
/// or by stage: "F=1/1/1/3" with S entries. F defaults to 1. B is I + W: of these three the one that is not named
/// follows from the others, B alone is halved, and without all three I and W are 1. Between ranks a message takes
/// `comm` (latency) and `transfer` (bytes / bandwidth, in which it occupies its channel), both 0 if not given; with S-1
/// entries they are those between a stage and the next one. `overlap` is a percentage. Numbers are decimal with at most
/// six places; the tick is chosen so that all are whole, halves of B and what a pair overlaps too.
/// Throws: Error{CommandLine} naming the part that is wrong.
ScheduleCosts parse_costs(const std::string& text, const ScheduleSize& size);

/// The same for a schedule whose ranks may hold different numbers of stages: each is shared by its own.
/// Throws: Error{CommandLine} too where these numbers are so many that no tick divides all shares.
ScheduleCosts parse_costs_for(const Schedule& schedule, const std::string& text);

}  // namespace vpp
