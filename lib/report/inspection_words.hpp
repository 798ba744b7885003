#pragma once
// Small texts that the renderings of an Inspection share.
#include <cstdint>
#include <string>
#include <vector>

#include "program/inspection.hpp"

namespace vpp {

/// Numbers that ascend, as people write them: "3", "4-7", "0,2-3"; "-" for none.
std::string numbers_text(const std::vector<int>& numbers);
/// 0.273 -> "27.3 %"
std::string percent_text(double share);
/// "critical path: stage 3 48.0 %, stage 0 20.0 %, 5 stages more 12.0 %, messages 20.0 %", the longest first.
std::string critical_path_text(const CriticalShares& path);
/// The full name of a row of the tree: "blocks.0..3", "blocks.4 (itself)", "model".
std::string row_name(const InspectedModule& module);

}  // namespace vpp
