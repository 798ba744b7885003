#include "base/safetensors_header.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/bad_data.hpp"
#include "base/error.hpp"
#include "base/json_text.hpp"

namespace vpp {

namespace {

using nlohmann::json;

constexpr std::string_view kMetadataKey = "__metadata__";
constexpr size_t kLengthBytes = 8;
constexpr uint64_t kDataAlignment = 64;
constexpr size_t kMaxDims = 64;
// Three levels: the header, a tensor, its shape.
constexpr JsonLimits kHeaderLimits{.max_depth = 3, .max_values = 2'000'000};

// In the order of DType.
constexpr std::array<std::string_view, 12> kFormatNames{"F32", "F64", "F16", "BF16", "I64", "I32",
                                                        "I16", "I8",  "U8",  "U16",  "U32", "BOOL"};

std::optional<DType> dtype_from_format(std::string_view name) {
    const auto found = std::find(kFormatNames.begin(), kFormatNames.end(), name);
    if (found == kFormatNames.end()) return std::nullopt;
    return static_cast<DType>(found - kFormatNames.begin());
}

uint64_t read_length(std::span<const std::byte> file) {
    uint64_t length = 0;
    for (size_t i = kLengthBytes; i-- > 0;) length = length << 8 | static_cast<uint64_t>(file[i]);
    return length;
}

std::string length_text(uint64_t length) {
    std::string text;
    for (size_t i = 0; i < kLengthBytes; ++i) text += static_cast<char>(length >> (8 * i) & 0xff);
    return text;
}

/// The member of a tensor's object, or a refusal.
const json& member(const json& object, const char* key, const std::string& where) {
    const auto found = object.find(key);
    if (found == object.end()) refuse_data(where, std::string("'") + key + "' is missing");
    return *found;
}

DType read_dtype(const json& value, const std::string& where) {
    const auto* name = value.get_ptr<const std::string*>();
    if (!name) refuse_data(where, "dtype is not a text");
    const std::optional<DType> dtype = dtype_from_format(*name);
    if (!dtype) refuse_data(where, "the dtype '" + printable(name->substr(0, 20)) + "' is not one that vpp knows");
    return *dtype;
}

/// A list of whole numbers >= 0 that fit in 63 bits.
std::vector<int64_t> read_numbers(const json& value, const char* what, const std::string& where) {
    if (!value.is_array() || value.size() > kMaxDims) {
        refuse_data(where, std::string(what) + " is not a list of at most " + std::to_string(kMaxDims) + " numbers");
    }
    std::vector<int64_t> numbers;
    for (const json& item : value) {
        if (!item.is_number_unsigned() || item.get<uint64_t>() > uint64_t{INT64_MAX}) {
            refuse_data(where, std::string(what) + " holds " + printable(item.dump().substr(0, 40)) +
                                   ", expected whole numbers from 0 on");
        }
        numbers.push_back(static_cast<int64_t>(item.get<uint64_t>()));
    }
    return numbers;
}

int64_t elements_of(const std::vector<int64_t>& shape, const std::string& where) {
    try {
        return num_elements(shape);
    } catch (const Error& e) {
        refuse_data(where, e.what());
    }
}

/// One tensor; its range is checked against the data's size and its own dtype and shape.
SafetensorsEntry read_entry(const std::string& name, const json& value, uint64_t data_begin, uint64_t data_size,
                            const std::string& source) {
    if (const std::string problem = name_problem(name); !problem.empty()) refuse_data(source, problem);
    const std::string where = source + ": tensor '" + name + "'";
    if (!value.is_object() || value.size() != 3) refuse_data(where, "not an object of dtype, shape and data_offsets");
    SafetensorsEntry entry;
    entry.name = name;
    entry.dtype = read_dtype(member(value, "dtype", where), where);
    entry.shape = read_numbers(member(value, "shape", where), "shape", where);
    const std::vector<int64_t> offsets = read_numbers(member(value, "data_offsets", where), "data_offsets", where);
    if (offsets.size() != 2 || offsets[0] > offsets[1]) refuse_data(where, "data_offsets is not a [begin, end]");
    const auto begin = static_cast<uint64_t>(offsets[0]), end = static_cast<uint64_t>(offsets[1]);
    if (end > data_size) {
        refuse_data(where,
                    "ends at byte " + std::to_string(end) + " of the data, which has " + std::to_string(data_size));
    }
    // Divided, not multiplied: elements x size may not fit in 64 bits.
    const auto elements = static_cast<uint64_t>(elements_of(entry.shape, where));
    const uint64_t size = size_of(entry.dtype), length = end - begin;
    if (length % size != 0 || length / size != elements) {
        refuse_data(where, std::string(name_of(entry.dtype)) + shape_text(entry.shape) + " does not fill its " +
                               std::to_string(length) + " bytes");
    }
    entry.begin_bytes = data_begin + begin;
    entry.end_bytes = data_begin + end;
    return entry;
}

std::map<std::string, std::string> read_metadata(const json& value, const std::string& source) {
    if (!value.is_object()) refuse_data(source, "__metadata__ is not an object");
    std::map<std::string, std::string> metadata;
    for (const auto& [key, text] : value.items()) {
        if (!text.is_string())
            refuse_data(source, "__metadata__ '" + printable(key.substr(0, 100)) + "' is not a text");
        metadata.emplace(key, text.get<std::string>());
    }
    return metadata;
}

/// Every byte of the data belongs to exactly one tensor.
void check_cover(const std::vector<SafetensorsEntry>& entries, uint64_t data_begin, uint64_t file_size,
                 const std::string& source) {
    std::vector<const SafetensorsEntry*> order;
    for (const SafetensorsEntry& entry : entries) order.push_back(&entry);
    std::sort(order.begin(), order.end(), [](const SafetensorsEntry* a, const SafetensorsEntry* b) {
        return std::pair(a->begin_bytes, a->end_bytes) < std::pair(b->begin_bytes, b->end_bytes);
    });
    uint64_t covered = data_begin;
    for (const SafetensorsEntry* entry : order) {
        if (entry->begin_bytes != covered) {
            refuse_data(source,
                        "tensor '" + entry->name + "' begins at byte " + std::to_string(entry->begin_bytes) +
                            (entry->begin_bytes > covered ? ", a hole after byte " : ", but data goes on to byte ") +
                            std::to_string(covered));
        }
        covered = entry->end_bytes;
    }
    if (covered != file_size) {
        refuse_data(source, "the tensors end at byte " + std::to_string(covered) + " of " + std::to_string(file_size));
    }
}

std::string quoted(const std::string& text) {
    try {
        return json(text).dump();
    } catch (const json::exception&) {
        throw Error(ErrorKind::BadData, "the text '" + printable(text.substr(0, 100)) + "' is not UTF-8");
    }
}

}  // namespace

std::string name_problem(std::string_view name) {
    const std::string shown = "the tensor name '" + printable(name.substr(0, 100)) + "' ";
    if (name.empty()) return "a tensor name is empty";
    if (name.size() > kMaxTensorNameBytes) {
        return shown + "has " + std::to_string(name.size()) + " bytes, at most " + std::to_string(kMaxTensorNameBytes);
    }
    if (printable(name) != name) return shown + "holds control bytes";
    if (name == kMetadataKey) return shown + "is reserved by the file format";
    return "";
}

uint64_t safetensors_header_end(std::span<const std::byte> begin, uint64_t size_bytes, const std::string& source) {
    if (size_bytes < kLengthBytes) {
        refuse_data(source, "only " + std::to_string(size_bytes) + " bytes, too short for a safetensors file");
    }
    const uint64_t length = read_length(begin);
    if (length > kMaxSafetensorsHeaderBytes) {
        const std::string_view text(reinterpret_cast<const char*>(begin.data()), kLengthBytes);
        if (text.starts_with("PK\x03\x04") || text.starts_with("\x80\x02")) {
            refuse_data(source,
                        "no safetensors file but one of PyTorch (a zip or a pickle, as torch.save writes them); save "
                        "its state_dict with safetensors.torch.save_file");
        }
        refuse_data(source, "a header of " + std::to_string(length) + " bytes, at most " +
                                std::to_string(kMaxSafetensorsHeaderBytes) + " are read");
    }
    if (length > size_bytes - kLengthBytes) {
        refuse_data(source,
                    "a header of " + std::to_string(length) + " bytes in a file of " + std::to_string(size_bytes));
    }
    return kLengthBytes + length;
}

SafetensorsHeader parse_safetensors(std::span<const std::byte> file, const std::string& source) {
    return parse_safetensors_begin(file, file.size(), source);
}

SafetensorsHeader parse_safetensors_begin(std::span<const std::byte> begin, uint64_t size_bytes,
                                          const std::string& source) {
    const uint64_t data_begin = safetensors_header_end(begin, size_bytes, source);
    const std::string_view text(reinterpret_cast<const char*>(begin.data()) + kLengthBytes, data_begin - kLengthBytes);
    if (text.empty() || text.front() != '{') refuse_data(source, "the header does not begin with '{'");
    const json root = parse_json(text, kHeaderLimits, source);
    SafetensorsHeader header;
    for (const auto& [name, value] : root.items()) {
        if (name == kMetadataKey) {
            header.metadata = read_metadata(value, source);
        } else {
            header.entries.push_back(read_entry(name, value, data_begin, size_bytes - data_begin, source));
        }
    }
    std::sort(header.entries.begin(), header.entries.end(),
              [](const SafetensorsEntry& a, const SafetensorsEntry& b) { return a.name < b.name; });
    check_cover(header.entries, data_begin, size_bytes, source);
    return header;
}

std::string make_safetensors_header(const std::vector<const TensorBytes*>& tensors,
                                    const std::map<std::string, std::string>& metadata) {
    std::string text = "{";
    for (const auto& [key, value] : metadata) {
        text += (text.size() == 1 ? "\"__metadata__\":{" : ",") + quoted(key) + ':' + quoted(value);
    }
    if (!metadata.empty()) text += '}';
    uint64_t offset = 0;
    for (const TensorBytes* tensor : tensors) {
        if (const std::string problem = name_problem(tensor->name); !problem.empty()) {
            throw Error(ErrorKind::BadData, problem);
        }
        const uint64_t end = offset + tensor->size_bytes();
        text += (text.size() == 1 ? "" : ",") + quoted(tensor->name) + ":{\"dtype\":\"" +
                std::string(kFormatNames.at(static_cast<size_t>(tensor->dtype))) +
                "\",\"shape\":" + json(tensor->shape).dump() + ",\"data_offsets\":[" + std::to_string(offset) + ',' +
                std::to_string(end) + "]}";
        offset = end;
    }
    text += '}';
    text.append((kDataAlignment - (kLengthBytes + text.size()) % kDataAlignment) % kDataAlignment, ' ');
    if (text.size() > kMaxSafetensorsHeaderBytes) {
        throw Error(ErrorKind::BadData, "a shard header of " + std::to_string(text.size()) + " bytes, at most " +
                                            std::to_string(kMaxSafetensorsHeaderBytes) + " are written");
    }
    return length_text(text.size()) + text;
}

}  // namespace vpp
