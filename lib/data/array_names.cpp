#include "data/array_names.hpp"

#include <algorithm>

#include "base/bad_data.hpp"
#include "base/error.hpp"
#include "base/suggest.hpp"

namespace vpp::detail {

ArrayName read_array_name(const std::string& written, const std::string& field) {
    for (const std::string ending : {".npz", ".safetensors"}) {
        if (written.ends_with(ending)) return {written, field};
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
