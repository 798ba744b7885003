#pragma once
// The reference page of the plan: every key with all that the table says about it, as Markdown.
#include <string>

#include "plan/keys.hpp"

namespace vpp {

/// The page. The same table and names give the same text.
std::string reference_page(const Names& names);

}  // namespace vpp
