#pragma once
// Measured costs and the cuts that follow from them, for people.
#include <cstdint>
#include <string>
#include <vector>

#include "graph/balance.hpp"
#include "report/text_table.hpp"

namespace vpp {

/// "longest stage 4.125 ms, lower bound 4.000 ms, the next best cut has 4.500 ms".
std::string balance_text(const Balance& balance, const std::string& unit);

/// Measured times of a part of the model, of one microbatch.
struct CostRow {
    std::string module;  ///< that it belongs to
    double forward_ms = 0, backward_ms = 0, input_gradient_ms = 0, weight_gradient_ms = 0;
    int64_t kept_bytes = 0;

    double both_ways_ms() const { return forward_ms + backward_ms; }
};

/// The submodules that take longest, in a table with all the others and the total below. Parts of one submodule are
/// added up.
std::string cost_table(const std::vector<CostRow>& parts, const TextStyle& style);

}  // namespace vpp
