#include "base/few.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace vpp {

std::string few_text(const std::vector<std::string>& texts, size_t most) {
    std::string text;
    for (size_t i = 0; i < std::min(texts.size(), most); ++i) text += (i > 0 ? ", " : "") + texts[i];
    return texts.size() > most ? text + " and " + std::to_string(texts.size() - most) + " more" : text;
}

std::string few_names_text(const std::vector<std::string>& names, size_t most) {
    std::vector<std::string> quoted;
    for (const std::string& name : names) quoted.push_back("'" + printable(name) + "'");
    return few_text(quoted, most);
}

std::string ranks_text(const std::vector<int>& ranks) {
    std::string text = ranks.size() == 1 ? "rank " : "ranks ";
    for (size_t i = 0; i < ranks.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(ranks[i]);
    return text;
}

}  // namespace vpp
