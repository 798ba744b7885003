#pragma once
// `vpp report`: runs as one page of HTML that loads nothing: results, curves of loss, rate, waiting and memory, the
// time-line of a step, settings, plans. Several runs are laid over each other.
#include <string>
#include <vector>

#include "report/run_record.hpp"

namespace vpp {

/// The page, which is well-formed XML behind its first line too.
/// Requires: at least one run. Whatever the runs hold stands in it as text.
std::string report_page(const std::vector<RecordedRun>& runs);

}  // namespace vpp
