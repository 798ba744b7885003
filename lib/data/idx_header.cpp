#include "data/idx_header.hpp"

#include <optional>

#include "base/bad_data.hpp"

namespace vpp::detail {

namespace {

std::optional<DType> dtype_of(std::byte code) {
    switch (std::to_integer<int>(code)) {
        case 0x08:
            return DType::U8;
        case 0x09:
            return DType::I8;
        case 0x0B:
            return DType::I16;
        case 0x0C:
            return DType::I32;
        case 0x0D:
            return DType::F32;
        case 0x0E:
            return DType::F64;
        default:
            return std::nullopt;
    }
}

int64_t dim_at(std::span<const std::byte> begin, size_t offset) {
    int64_t dim = 0;
    for (const std::byte b : begin.subspan(offset, 4)) dim = dim << 8 | std::to_integer<int64_t>(b);
    return dim;
}

}  // namespace

IdxLayout idx_layout(std::span<const std::byte> begin, uint64_t size_bytes, const std::string& source) {
    constexpr std::byte kNone{0}, kGzip[] = {std::byte{0x1f}, std::byte{0x8b}};
    if (begin.size() < 4) refuse_data(source, "too short for an IDX file");
    if (begin[0] == kGzip[0] && begin[1] == kGzip[1]) refuse_data(source, "compressed; unpack it with gunzip");
    const std::optional<DType> dtype = dtype_of(begin[2]);
    if (begin[0] != kNone || begin[1] != kNone || !dtype) {
        refuse_data(source, "not an IDX file: it does not begin with two zero bytes and the code of a type");
    }
    IdxLayout layout{*dtype, {}, 0};
    const auto num_dims = std::to_integer<size_t>(begin[3]);
    if (num_dims == 0 || num_dims > kMostIdxDims) {
        refuse_data(source, std::to_string(num_dims) + " dims (expected 1 to " + std::to_string(kMostIdxDims) + ")");
    }
    layout.offset_bytes = 4 + 4 * num_dims;
    if (begin.size() < layout.offset_bytes) refuse_data(source, "the IDX header is cut short");
    for (size_t i = 0; i < num_dims; ++i) layout.shape.push_back(dim_at(begin, 4 + 4 * i));
    for (const int64_t dim : layout.shape) {
        if (dim == 0) refuse_data(source, "holds no values (got shape " + shape_text(layout.shape) + ")");
    }
    if (!fills(layout.shape, layout.dtype, size_bytes - layout.offset_bytes)) {
        refuse_data(source, "the IDX header does not fit the file (got shape " + shape_text(layout.shape) + " of " +
                                std::string(name_of(layout.dtype)) + ", and " +
                                std::to_string(size_bytes - layout.offset_bytes) + " bytes); copy the file again");
    }
    return layout;
}

}  // namespace vpp::detail
