// A fixed amount of the work of module schedule, for counting its instructions: six schedules are made, lowered,
// checked and simulated. Prints the makespans' sum, so that nothing can be left out.
#include <iostream>

#include "schedule/checker.hpp"
#include "schedule/edges.hpp"
#include "schedule/generators.hpp"
#include "schedule/lowering.hpp"
#include "schedule/simulator.hpp"

int main() {
    using namespace vpp;
    constexpr int kRanks = 8, kMicrobatches = 32;
    Ticks sum = 0;
    for (const char* name : {"GPIPE", "1F1B", "INTERLEAVED_1F1B", "ZERO_BUBBLE_H1", "ZERO_BUBBLE_V", "DUALPIPE_V"}) {
        const Schedule compute = make_schedule(name, kRanks, find_schedule_kind(name)->fewest_per_rank, kMicrobatches);
        const std::vector<ScheduleEdge> edges = chain_edges(compute.num_stages());
        const Schedule lowered = lower(compute, edges);
        sum += check_schedule(lowered, edges).num_messages + simulate(lowered).makespan;
    }
    std::cout << sum << '\n';
}
