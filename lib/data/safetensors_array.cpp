#include "data/safetensors_array.hpp"

#include <algorithm>
#include <vector>

#include "base/bytes.hpp"
#include "base/safetensors_header.hpp"
#include "data/array_names.hpp"

namespace vpp::detail {

ArrayPlace find_in_safetensors(const InputFile& file, const std::string& name) {
    const std::string source = file.path().string();
    const uint64_t size = file.size_bytes();
    Bytes begin(static_cast<size_t>(std::min<uint64_t>(size, sizeof(uint64_t))));
    file.read(0, begin);
    begin.resize(static_cast<size_t>(safetensors_header_end(begin, size, source)));
    file.read(0, begin);
    const SafetensorsHeader header = parse_safetensors_begin(begin, size, source);
    const auto entry = std::ranges::find(header.entries, name, &SafetensorsEntry::name);
    if (entry != header.entries.end()) return {entry->dtype, entry->shape, entry->begin_bytes};
    std::vector<std::string> names;
    for (const SafetensorsEntry& other : header.entries) names.push_back(other.name);
    refuse_unknown_array(name, names, source);
}

}  // namespace vpp::detail
