#pragma once
// The few collective calls vpp needs, over any Transport: small, rare (start, end of a step, save), so a star around
// rank 0. Every rank of the transport must call the same functions in the same order; sizes may differ by rank.
#include <functional>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "comm/transport.hpp"

namespace vpp {

/// Rank 0's bytes on every rank.  Calls: collective.
Bytes broadcast(Transport& transport, Bytes bytes);

/// What `make` gives on rank 0, the only one that calls it; the Error that it throws there is thrown on every rank.
/// Calls: collective.
std::string from_first_rank(Transport& transport, const std::function<std::string()>& make);

/// Every rank's bytes on rank 0, by rank; empty elsewhere.  Calls: collective.
std::vector<Bytes> gather(Transport& transport, Bytes bytes);

/// Every rank's bytes on every rank.  Calls: collective.
std::vector<Bytes> all_gather(Transport& transport, Bytes bytes);

/// Whether it is so on every rank.  Calls: collective.
bool is_everywhere(Transport& transport, bool is_here);

/// Returns when every rank has called it.  Calls: collective.
void barrier(Transport& transport);

/// Throws Error{RanksDisagree} on every rank when `value` is not the same text everywhere; names the ranks, `what`
/// and both values; of texts with several lines the first line that differs.  Calls: collective.
void check_equal(Transport& transport, const std::string& what, const std::string& value);

}  // namespace vpp
