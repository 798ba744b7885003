#include "data/file_info.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "data/dataset.hpp"
#include "data/foreign_file.hpp"
#include "data/halves.hpp"
#include "data/megatron_index.hpp"
#include "data/npz.hpp"
#include "data/number_types.hpp"
#include "data/rows.hpp"
#include "data/safetensors_array.hpp"
#include "data/token_file.hpp"

namespace vpp {

namespace {

namespace fs = std::filesystem;

constexpr uint64_t kCifarRecordBytes = 1 + 3 * 32 * 32;

Bytes first_bytes(const InputFile& file, uint64_t most) {
    Bytes bytes(static_cast<size_t>(std::min(file.size_bytes(), most)));
    file.read(0, bytes);
    return bytes;
}

bool seems_cifar10(const InputFile& file) {
    const uint64_t records = file.size_bytes() / kCifarRecordBytes;
    if (records == 0 || file.size_bytes() % kCifarRecordBytes != 0) return false;
    for (uint64_t i = 0; i < std::min<uint64_t>(records, 100); ++i) {
        std::byte label{};
        file.read(i * kCifarRecordBytes, {&label, 1});
        if (label >= std::byte{10}) return false;
    }
    return true;
}

bool seems_idx(const Bytes& begin) {
    if (begin.size() < 8 || begin[0] != std::byte{0} || begin[1] != std::byte{0}) return false;
    const auto type = std::to_integer<int>(begin[2]), dims = std::to_integer<int>(begin[3]);
    return type >= 8 && type <= 14 && type != 10 && dims >= 1 && dims <= 8;
}

std::string seeming_kind(const std::string& path, const InputFile& file) {
    for (const char* ending : {".npy", ".npz", ".safetensors"}) {
        if (path.ends_with(ending)) return "arrays";
    }
    if (path.ends_with(".bin")) return !detail::index_beside(path) && seems_cifar10(file) ? "cifar10" : "tokens";
    return seems_idx(first_bytes(file, 8)) ? "idx" : "text";
}

/// Values of type T, each of which `number_of` makes a number.
template <typename T, typename NumberOf>
void widen_range(std::span<const std::byte> bytes, SeenValues& seen, const NumberOf& number_of) {
    for (size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
        T value;
        std::memcpy(&value, bytes.data() + at, sizeof value);
        const double number = number_of(value);
        ++seen.num_values;
        if (!std::isfinite(number)) {
            ++seen.num_not_finite;
            continue;
        }
        seen.low = std::min(seen.low, number);
        seen.high = std::max(seen.high, number);
    }
}

/// Bool counts as 0 and 1.
void widen_range(DType dtype, std::span<const std::byte> bytes, SeenValues& seen) {
    if (dtype == DType::F16) return widen_range<uint16_t>(bytes, seen, detail::from_float16);
    if (dtype == DType::BF16) return widen_range<uint16_t>(bytes, seen, detail::from_bfloat16);
    detail::with_number_type(dtype == DType::Bool ? DType::U8 : dtype, [&](auto zero) {
        widen_range<decltype(zero)>(bytes, seen, [](auto value) { return static_cast<double>(value); });
    });
}

SeenValues nothing_seen() {
    return {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
}

/// Of consecutive rows, whatever the size of one.
ArrayInfo look_at_rows(const detail::RowFile& rows, const std::string& name, int64_t most_bytes) {
    const auto value_bytes = static_cast<int64_t>(size_of(rows.field.dtype));
    const int64_t num_values = rows.num_rows * num_elements(rows.field.shape);
    const int64_t looked_at = std::min(num_values, most_bytes / value_bytes);
    SeenValues seen = nothing_seen();
    constexpr int64_t kPiece = 65536;
    for (int64_t first = 0; first < looked_at; first += kPiece) {
        Bytes values(static_cast<size_t>(std::min(kPiece, looked_at - first) * value_bytes));
        detail::read_values(rows, first, values);
        widen_range(rows.field.dtype, values, seen);
    }
    seen.all = looked_at == num_values;
    return {name, rows.field.dtype, rows.field.shape, rows.num_rows, seen};
}

/// One that no field could be made of, since it has no dims or no values.
ArrayInfo array_without_samples(const std::string& name, const detail::ArrayPlace& place) {
    ArrayInfo array{name, place.dtype, place.shape, 0, {}};
    if (!place.shape.empty()) {
        array.num_samples = place.shape.front();
        array.shape.erase(array.shape.begin());
    }
    return array;
}

ArrayInfo unreadable_array(const std::string& name, const std::string& problem) {
    ArrayInfo array;
    array.name = name;
    array.problem = problem;
    return array;
}

ArrayInfo look_at_array(const std::string& path, const detail::FoundArray& found, int64_t most_bytes) {
    if (!found.place) return unreadable_array(found.name, found.problem);
    if (found.place->shape.empty() || found.place->is_empty()) return array_without_samples(found.name, *found.place);
    try {
        return look_at_rows(detail::rows_of_array(InputFile(path), *found.place, found.name), found.name, most_bytes);
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::BadData) throw;
        return unreadable_array(found.name, error.what());
    }
}

/// Every array by itself: those of one file may have other numbers of samples. One that cannot be read keeps no other
/// from being told.
void look_at_arrays(const std::string& path, const InputFile& file, int64_t most_bytes, FileInfo& info) {
    std::vector<detail::FoundArray> found;
    if (path.ends_with(".npz")) {
        found = detail::arrays_of_npz(file);
    } else if (path.ends_with(".safetensors")) {
        found = detail::arrays_of_safetensors(file);
    } else {
        info.arrays = {look_at_rows(detail::open_rows_of_npy(path), fs::path(path).stem().string(), most_bytes)};
    }
    for (const detail::FoundArray& array : found) info.arrays.push_back(look_at_array(path, array, most_bytes));
    const auto is_readable = [](const ArrayInfo& array) { return array.problem.empty(); };
    if (info.arrays.empty() || std::ranges::any_of(info.arrays, is_readable)) return;
    throw Error(ErrorKind::BadData, info.arrays.front().problem);
}

/// Record by record, since the bytes of a field do not lie together.
void look_at_cifar10(const std::string& path, int64_t most_bytes, FileInfo& info) {
    Plan plan;
    plan.data.kind = "cifar10";
    plan.data.train = {path};
    const std::unique_ptr<Dataset> dataset = open_dataset(plan, Subset::Train);
    const Fields& fields = dataset->fields();
    for (size_t i = 0; i < fields.fields.size(); ++i) {
        const Field& field = fields.fields[i];
        const int64_t looked_at = std::min(fields.num_samples, most_bytes / field.bytes_per_sample());
        SeenValues seen = nothing_seen();
        Bytes sample(static_cast<size_t>(field.bytes_per_sample()));
        for (int64_t k = 0; k < looked_at; ++k) {
            dataset->read(k, static_cast<int>(i), sample);
            widen_range(field.dtype, sample, seen);
        }
        seen.all = looked_at == fields.num_samples;
        info.arrays.push_back({field.name, field.dtype, field.shape, fields.num_samples, seen});
    }
}

void look_at_tokens(const detail::TokenFile& file, int64_t most_bytes, FileInfo& info) {
    info.num_tokens = file.num_tokens;
    info.token_bytes = file.token_bytes;
    const int64_t looked_at = std::min(file.num_tokens, most_bytes / static_cast<int64_t>(sizeof(int64_t)));
    SeenValues seen = nothing_seen();
    constexpr int64_t kPiece = 65536;
    for (int64_t first = 0; first < looked_at; first += kPiece) {
        Bytes tokens(static_cast<size_t>(std::min(kPiece, looked_at - first)) * sizeof(int64_t));
        detail::read_tokens(file, first, tokens);
        widen_range(DType::I64, tokens, seen);
    }
    seen.all = looked_at == file.num_tokens;
    if (looked_at > 0) info.tokens = seen;
}

void look_at_documents(detail::TokenFile file, FileInfo& info) {
    const detail::DocumentFile held = detail::open_documents(std::move(file));
    DocumentInfo documents{static_cast<int64_t>(held.begins.size()) - 1, std::numeric_limits<int64_t>::max(), 0};
    for (size_t i = 0; i + 1 < held.begins.size(); ++i) {
        const int64_t length = held.begins[i + 1] - held.begins[i];
        documents.shortest = std::min(documents.shortest, length);
        documents.longest = std::max(documents.longest, length);
    }
    info.documents = documents;
}

}  // namespace

FileInfo look_at_file(const std::string& path, const std::string& kind, int64_t most_bytes) {
    refuse_folder(path);
    InputFile file(path);
    if (kind.empty() && detail::is_megatron_index(first_bytes(file, detail::kMegatronHeaderBytes))) {
        return look_at_file(fs::path(path).replace_extension(".bin").string(), "tokens", most_bytes);
    }
    FileInfo info;
    info.file = path;
    info.kind = kind.empty() ? seeming_kind(path, file) : kind;
    info.size_bytes = file.size_bytes();
    if (info.kind == "tokens") {
        detail::TokenFile tokens = detail::open_token_file(path, "auto");
        look_at_tokens(tokens, most_bytes, info);
        info.note = note_on_tokens(file);
        if (detail::index_beside(path)) look_at_documents(std::move(tokens), info);
    } else if (info.kind == "text") {
        const auto num_tokens = static_cast<int64_t>(file.size_bytes());
        info.note = note_on_text(file);
        look_at_tokens({std::move(file), 0, 1, num_tokens}, most_bytes, info);
    } else if (info.kind == "arrays") {
        look_at_arrays(path, file, most_bytes, info);
    } else if (info.kind == "idx") {
        const std::string name = fs::path(path).filename().string();
        info.arrays = {look_at_rows(detail::open_rows_of_idx(path, name), name, most_bytes)};
    } else if (info.kind == "cifar10") {
        look_at_cifar10(path, most_bytes, info);
    } else {
        throw Error(ErrorKind::CommandLine, "no kind of data files (got '" + printable(kind) +
                                                "', expected tokens, text, arrays, idx or cifar10)");
    }
    return info;
}

}  // namespace vpp
