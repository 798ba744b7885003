#pragma once
// The rows of the table of keys (plan/keys.hpp), written down. Looking at them goes through all_keys().
#include <vector>

#include "plan/keys.hpp"

namespace vpp::detail {

/// All rows, in the order of all_keys().
std::vector<Key> make_key_rows();

}  // namespace vpp::detail
