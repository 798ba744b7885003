#pragma once
// Programs for trying out: few microbatches through the stages of another program, or through all its ops on one rank.
#include <vector>

#include "program/program.hpp"
#include "schedule/lowering.hpp"

namespace vpp {

/// The same stages on the same ranks, with one microbatch of the same size: forward through all stages, then back, in
/// halves (I, W) where the program's schedule has halves. Nothing is evaluated.
/// `order`: as the plan has it (program/lowered_schedule.hpp).
Program one_microbatch(const Program& program, MessageOrder order);

/// The model cut before these ops, all stages on one rank, which runs these microbatches one after the other: forward
/// through all stages, then back, in halves (I with its W behind it) or whole. Nothing is evaluated.
Program on_one_rank(const Program& program, const std::vector<int>& cuts, int num_microbatches, bool halves);

}  // namespace vpp
