#pragma once
// The figures of a step as people read them; the live line and the step line share them.
#include <string>

#include "report/event.hpp"

namespace vpp {

/// Four decimals while they mean something: "3.1416", "1.2e+07".
std::string loss_text(double loss);
/// "  12.3 K tokens/s", or samples where the data are not tokens.
std::string rate_text(const StepEvent& event);
/// "3.2 GFLOP/s"
std::string flops_rate_text(double flops_per_second);
/// The same of a step, aligned; empty when it is not known.
std::string flops_text(const StepEvent& event);
/// "21 %"
std::string whole_percent_text(double share);

}  // namespace vpp
