#include "data/array_names.hpp"

#include <algorithm>

#include "base/bad_data.hpp"
#include "base/error.hpp"
#include "base/suggest.hpp"

namespace vpp::detail {

namespace {

/// Whether a name that ends as a file of arrays does is one behind a colon, "w.safetensors:x.npz", and no path.
bool is_behind_colon(const std::string& written) {
    const size_t colon = written.rfind(':');
    if (colon == std::string::npos || written.find('/', colon) != std::string::npos) return false;
    const std::string before = written.substr(0, colon);
    return before.ends_with(".npz") || before.ends_with(".safetensors");
}

}  // namespace

ArrayName read_array_name(const std::string& written, const std::string& field) {
    for (const std::string ending : {".npz", ".safetensors"}) {
        if (written.ends_with(ending) && !is_behind_colon(written)) return {written, field};
        const size_t at = written.rfind(ending + ":");
        if (at == std::string::npos) continue;
        const size_t colon = at + ending.size();
        return {written.substr(0, colon), written.substr(colon + 1)};
    }
    return {written, ""};
}

void refuse_unknown_array(const std::string& name, const std::vector<std::string>& names, const std::string& source) {
    constexpr size_t kMostShown = 8;
    std::string list;
    for (size_t i = 0; i < std::min(names.size(), kMostShown); ++i) {
        list += (list.empty() ? "" : ", ") + printable(names[i]);
    }
    if (names.size() > kMostShown) list += ", ...";
    if (names.empty()) refuse_data(source, "it has no arrays");
    refuse_data(source, "it has no array '" + printable(name) + "' (it has " + list + ")" + did_you_mean(name, names) +
                            "; name one behind the file: \"" + printable(source) + ":" + printable(names.front()) +
                            "\"");
}

}  // namespace vpp::detail
