#pragma once
// IDX files made of inline values; the header says what it is told, right or wrong.
#include <cstdint>
#include <string>
#include <vector>

namespace vpp::test {

inline std::string idx(char type, const std::vector<uint32_t>& dims, const std::string& values) {
    std::string file{0, 0, type, static_cast<char>(dims.size())};
    for (const uint32_t dim : dims) {
        for (const int shift : {24, 16, 8, 0}) file += static_cast<char>(dim >> shift & 0xff);
    }
    return file + values;
}

}  // namespace vpp::test
