#pragma once
// JSON from files that nobody vouches for: bounded in depth and in number of values, without duplicate keys. And JSON
// for others to read, whatever bytes names have.
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace vpp {

/// What a hostile text may cost at most. Memory is about 200 bytes a value beside the text itself.
struct JsonLimits {
    int max_depth = 4;              ///< objects and arrays inside each other; the outermost is 1
    size_t max_values = 1'000'000;  ///< keys, scalars, objects and arrays together
};

/// Parses one JSON value that fills the whole text, but for white space.
/// Requires: the text fits in memory; its size is the caller's to bound.
/// Throws:   Error{BadData} that begins with `source`: syntax, bad UTF-8, a limit, a duplicate key, a NUL byte.
nlohmann::json parse_json(std::string_view text, const JsonLimits& limits, const std::string& source);

/// The value as text, in one line or indented. Bytes that are no UTF-8, as a file's name may have, are replaced: the
/// library's own dump() throws at them.
std::string json_text(const nlohmann::json& value, int indent = -1);
std::string json_text(const nlohmann::ordered_json& value, int indent = -1);

}  // namespace vpp
