#include <algorithm>
#include <array>
#include <span>

#include "data/idx_header.hpp"
#include "data/kinds.hpp"
#include "data/rows.hpp"

namespace vpp::detail {

namespace {

/// Rows of bytes: labels where a row is one, else pictures, with a dim for the channel where they have none.
void take_bytes(RowFile& rows) {
    std::vector<int64_t>& shape = rows.field.shape;
    if (shape.empty()) {
        rows.field.dtype = DType::I64;
        rows.field.bound = 256;
        rows.decode = decode_labels;
        return;
    }
    if (shape.size() == 2) shape.insert(shape.begin(), 1);
    rows.field.dtype = DType::F32;
    rows.decode = decode_picture;
}

Decode decode_of(size_t value_bytes) {
    switch (value_bytes) {
        case 2:
            return decode_big_endian<2>;
        case 4:
            return decode_big_endian<4>;
        case 8:
            return decode_big_endian<8>;
        default:
            return nullptr;
    }
}

}  // namespace

RowFile open_rows_of_idx(const std::string& path, const std::string&) {
    InputFile file(path);
    std::array<std::byte, kMaxIdxBeginBytes> bytes{};
    const auto begin = std::span(bytes).first(std::min<uint64_t>(file.size_bytes(), bytes.size()));
    file.read(0, begin);
    const IdxLayout layout = idx_layout(begin, file.size_bytes(), path);
    RowFile rows{std::move(file),
                 {"", layout.dtype, {layout.shape.begin() + 1, layout.shape.end()}, 0},
                 layout.offset_bytes,
                 layout.shape.front()};
    rows.row_bytes = static_cast<size_t>(rows.field.bytes_per_sample());
    rows.decode = decode_of(size_of(layout.dtype));
    if (layout.dtype == DType::U8) take_bytes(rows);
    return rows;
}

std::unique_ptr<Dataset> open_idx(const Plan& plan, Subset subset) {
    return open_rows(plan, subset, open_rows_of_idx);
}

}  // namespace vpp::detail
