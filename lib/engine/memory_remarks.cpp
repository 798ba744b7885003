#include "engine/memory_remarks.hpp"

#include <utility>

#include "base/units.hpp"

namespace vpp {

std::string MemoryRemarks::look(const StepTotals& totals, bool may_hold_device) {
    const std::string of_room = look_at_room(totals, may_hold_device);
    const std::string of_taking = look_at_taking(totals, may_hold_device);
    return of_room + (of_room.empty() || of_taking.empty() ? "" : "; ") + of_taking;
}

std::string MemoryRemarks::look_at_room(const StepTotals& totals, bool may_hold_device) {
    const int64_t flushes = totals.memory_flushes;
    const bool goes_by_host = may_hold_device && !totals.have_devices_room();
    const bool was_told = std::exchange(is_full_told_, goes_by_host);
    if (flushes == 0 && (was_told || !goes_by_host)) return {};
    std::string text = flushes == 0 ? "cards are nearly full"
                                    : "cards were full " + counted_text(flushes, "time") +
                                          ", and what was kept for later went back to them, which waits for all that "
                                          "they do";
    if (goes_by_host) text += "; stages send through the host until there is room";
    return text + "; use more stages or smaller microbatches (a larger pipeline.num_microbatches)";
}

std::string MemoryRemarks::look_at_taking(const StepTotals& totals, bool may_hold_device) {
    const bool goes_by_host = may_hold_device && totals.have_devices_room() && totals.takes_memory;
    taking_steps_ = goes_by_host ? taking_steps_ + 1 : 0;
    if (taking_steps_ < kManySteps || std::exchange(is_taking_told_, true)) return {};
    return "each of the last " + std::to_string(kManySteps) +
           " steps took new memory of cards, so stages send through the host, which is slower; where shapes keep "
           "changing, pad samples to one shape";
}

}  // namespace vpp
