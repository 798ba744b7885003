#pragma once
// The dry run: one microbatch of the first data through all stages, forward and backward, by the engine that trains.
#include "engine/engine.hpp"
#include "report/rehearsal_text.hpp"

namespace vpp {

/// The times are those of the quickest of these passes; the one before them allocates and is not timed.
inline constexpr int kRehearsedPasses = 3;

/// `one` is the engine's program (program/one_microbatch.hpp), `whole` the one whose step is simulated with what is
/// measured. Nothing is updated and nothing written.
/// Calls: collective.
/// Gives: on rank 0 the figures of all; elsewhere only the loss.
RehearsalReport rehearse(Engine& engine, const Program& one, const Program& whole);

}  // namespace vpp
