#pragma once
// The measured pipeline as a table for a person.
//
//   pipeline of 1F1B, milliseconds of a step, the mean of the steps 3 to 200
//   stage  PP rank    forward   backward   transfer       wait
//       0        0       4.12       8.31       0.11       3.20
//       1        1       4.40       8.90       0.12       2.71
//   actions 16.10 ms a step, simulated with these times 15.20 ms
//   bubble 18.2 %, simulated 15.0 %; messages and uneven actions make the difference
#include <string>

#include "report/event.hpp"

namespace vpp {

/// Stages by their place on the PP axis: with mesh.dp or mesh.tp several ranks have the same stages, and the times
/// are means of theirs.
/// Lines of at most 80 columns, each with its end.
std::string pipeline_table(const PipelineEvent& event);

}  // namespace vpp
