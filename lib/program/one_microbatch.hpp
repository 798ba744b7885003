#pragma once
// A program for trying out: one microbatch through the stages of another one.
#include "program/program.hpp"
#include "schedule/lowering.hpp"

namespace vpp {

/// The same stages on the same ranks, with one microbatch of the same size: forward through all stages, then back, in
/// halves (I, W) where the program's schedule has halves. Nothing is evaluated.
/// `order`: as the plan has it (program/lowered_schedule.hpp).
Program one_microbatch(const Program& program, MessageOrder order);

}  // namespace vpp
