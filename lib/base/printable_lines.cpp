#include "base/printable_lines.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace vpp {

std::string printable_lines(const std::string& text) {
    std::string lines;
    for (size_t begin = 0; begin < text.size();) {
        const size_t end = std::min(text.find('\n', begin), text.size());
        lines += printable(text.substr(begin, end - begin)) + '\n';
        begin = end + 1;
    }
    return lines;
}

}  // namespace vpp
