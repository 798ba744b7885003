#include "data/safetensors_array.hpp"

#include <algorithm>
#include <vector>

#include "base/bytes.hpp"
#include "base/safetensors_header.hpp"
#include "data/array_names.hpp"

namespace vpp::detail {

namespace {

SafetensorsHeader header_of(const InputFile& file) {
    const std::string source = file.path().string();
    const uint64_t size = file.size_bytes();
    Bytes begin(static_cast<size_t>(std::min<uint64_t>(size, sizeof(uint64_t))));
    file.read(0, begin);
    begin.resize(static_cast<size_t>(safetensors_header_end(begin, size, source)));
    file.read(0, begin);
    return parse_safetensors_begin(begin, size, source);
}

ArrayPlace place_of_tensor(const SafetensorsEntry& entry) {
    return {entry.dtype, entry.shape, entry.begin_bytes};
}

std::vector<std::string> tensors_of(const SafetensorsHeader& header) {
    std::vector<std::string> names;
    for (const SafetensorsEntry& entry : header.entries) names.push_back(entry.name);
    return names;
}

}  // namespace

std::vector<FoundArray> arrays_of_safetensors(const InputFile& file) {
    const SafetensorsHeader header = header_of(file);
    std::vector<FoundArray> arrays;
    for (const SafetensorsEntry& entry : header.entries) arrays.push_back({entry.name, place_of_tensor(entry)});
    return arrays;
}

ArrayPlace find_in_safetensors(const InputFile& file, const std::string& name) {
    const SafetensorsHeader header = header_of(file);
    const auto entry = std::ranges::find(header.entries, name, &SafetensorsEntry::name);
    if (entry != header.entries.end()) return place_of_tensor(*entry);
    refuse_unknown_array(name, tensors_of(header), file.path().string());
}

}  // namespace vpp::detail
