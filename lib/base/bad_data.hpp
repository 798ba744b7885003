#pragma once
// Refusing what was read: a file, a record or a message that is damaged or of another form than was expected.
#include <string>

namespace vpp {

/// Throws Error{BadData} "source: what"; `source` is what the user can look at, with the place in it.
[[noreturn]] void refuse_data(const std::string& source, const std::string& what);

}  // namespace vpp
