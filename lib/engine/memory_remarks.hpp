#pragma once
// What a step has to say about the memory of its devices. Nothing else tells of the time that it takes.
#include <string>

#include "engine/step_exchange.hpp"

namespace vpp {

class MemoryRemarks {
  public:
    /// So many steps in a row that take new memory are no beginning, and no shape that comes once.
    static constexpr int kManySteps = 16;

    /// Takes what a step took; may_hold_device: Transport::may_hold_device. Empty when there is nothing to say: that
    /// devices are nearly full is said once until they have room, that steps keep taking memory once at all.
    std::string look(const StepTotals& totals, bool may_hold_device);

  private:
    std::string look_at_room(const StepTotals& totals, bool may_hold_device);
    std::string look_at_taking(const StepTotals& totals, bool may_hold_device);

    bool is_full_told_ = false;  ///< since devices last had room
    int taking_steps_ = 0;       ///< in a row
    bool is_taking_told_ = false;
};

}  // namespace vpp
