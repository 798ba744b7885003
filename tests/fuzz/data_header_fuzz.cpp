// Headers of data files from hostile bytes: whatever comes, a layout that fills the file exactly, or Error{BadData}.
// The first byte chooses the reader, the next eight the file's size where the bytes behind them are enough for a
// header: so files of any size are tried without having them.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "base/error.hpp"
#include "data/idx_header.hpp"
#include "data/megatron_index.hpp"
#include "data/npy.hpp"
#include "data/token_header.hpp"
#include "data/zip_directory.hpp"

namespace {

constexpr size_t kHeadBytes = 1 + sizeof(uint64_t);

uint64_t size_of_file(uint64_t claimed, size_t num_bytes, size_t looked_at) {
    return num_bytes < looked_at ? num_bytes : std::max<uint64_t>(claimed, num_bytes);
}

void read_npy(std::span<const std::byte> bytes, uint64_t claimed) {
    const uint64_t size = size_of_file(claimed, bytes.size(), vpp::kMaxNpyBeginBytes);
    const auto begin = bytes.first(std::min(bytes.size(), vpp::kMaxNpyBeginBytes));
    const vpp::NpyLayout layout =
        vpp::npy_layout({reinterpret_cast<const char*>(begin.data()), begin.size()}, size, "fuzz.npy");
    vpp::check(layout.offset_bytes <= size, "data begin inside the file");
    const auto elements = static_cast<uint64_t>(vpp::num_elements(layout.header.shape));
    vpp::check(elements * vpp::size_of(layout.header.dtype) == size - layout.offset_bytes, "data fill the file");
}

void read_tokens(std::span<const std::byte> bytes, uint64_t claimed, const std::string& dtype) {
    using namespace vpp::detail;
    const uint64_t size = size_of_file(claimed, bytes.size(), kTokenHeaderBytes);
    const TokenLayout layout =
        token_layout(bytes.first(std::min(bytes.size(), kTokenHeaderBytes)), size, dtype, "fuzz.bin");
    vpp::check(layout.num_tokens >= 0 && layout.offset_bytes <= size, "tokens begin inside the file");
    vpp::check(static_cast<uint64_t>(layout.num_tokens) * layout.token_bytes == size - layout.offset_bytes,
               "tokens fill the file");
    vpp::check(dtype != "uint32" || layout.token_bytes == 4, "tokens have the width that was asked for");
}

void read_idx(std::span<const std::byte> bytes, uint64_t claimed) {
    using namespace vpp::detail;
    const uint64_t size = size_of_file(claimed, bytes.size(), kMaxIdxBeginBytes);
    const IdxLayout layout = idx_layout(bytes.first(std::min(bytes.size(), kMaxIdxBeginBytes)), size, "fuzz.idx");
    vpp::check(!layout.shape.empty() && layout.offset_bytes <= size, "values begin inside the file");
    const auto elements = static_cast<uint64_t>(vpp::num_elements(layout.shape));
    vpp::check(elements * vpp::size_of(layout.dtype) == size - layout.offset_bytes, "values fill the file");
}

void read_megatron(std::span<const std::byte> bytes, uint64_t claimed) {
    using namespace vpp::detail;
    const uint64_t size = size_of_file(claimed, bytes.size(), kMegatronHeaderBytes);
    const auto begin = bytes.first(std::min(bytes.size(), kMegatronHeaderBytes));
    const MegatronIndex index = megatron_index(begin, size, "fuzz.idx");
    vpp::check(index.last_length_at() + 4 <= size && index.last_begin_at() + 8 <= size, "the last sequence is there");
    if (size != bytes.size()) return;
    const auto num_tokens = static_cast<int64_t>(claimed % 1000);
    const std::vector<int64_t> begins =
        megatron_documents(index, bytes.subspan(kMegatronHeaderBytes), num_tokens, "fuzz.idx");
    vpp::check(begins.size() > 1 && begins.front() == 0 && begins.back() == num_tokens, "documents fill the file");
    vpp::check(std::ranges::is_sorted(begins), "documents follow each other");
}

/// The bytes are the whole file: a directory needs what lies before it.
void read_zip(std::span<const std::byte> bytes) {
    using namespace vpp::detail;
    const ZipEnd end = zip_end(bytes.last(std::min(bytes.size(), kMaxZipEndBytes)), bytes.size(), "fuzz.npz");
    for (const ZipEntry& entry : zip_entries(bytes.subspan(end.offset_bytes, end.size_bytes), end, "fuzz.npz")) {
        if (!entry.stored) continue;
        const auto from = bytes.subspan(entry.header_offset_bytes);
        const auto header = from.first(std::min(from.size(), kZipLocalHeaderBytes + entry.name.size()));
        const uint64_t begin = zip_data_offset(header, entry, end, "fuzz.npz");
        vpp::check(begin <= bytes.size() && entry.size_bytes <= bytes.size() - begin, "entries lie inside the file");
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size < kHeadBytes) return 0;
    uint64_t claimed = 0;
    std::memcpy(&claimed, data + 1, sizeof claimed);
    const auto bytes = std::as_bytes(std::span(data, size)).subspan(kHeadBytes);
    try {
        static const std::array<std::string, 3> kDTypes{"auto", "uint16", "uint32"};
        switch (const size_t reader = data[0] % 7) {
            case 0:
                read_npy(bytes, claimed);
                break;
            case 4:
                read_idx(bytes, claimed);
                break;
            case 5:
                read_megatron(bytes, claimed);
                break;
            case 6:
                read_zip(bytes);
                break;
            default:
                read_tokens(bytes, claimed, kDTypes[reader - 1]);
        }
    } catch (const vpp::Error& error) {
        if (error.kind() != vpp::ErrorKind::BadData) throw;
    }
    return 0;
}
