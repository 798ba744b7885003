#include "base/dtype.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"

namespace vpp {

namespace {

struct Row {
    std::string_view name;
    size_t bytes;
    bool floating;
};

// In the order of DType.
constexpr std::array<Row, 12> kRows{{{"float32", 4, true},
                                     {"float64", 8, true},
                                     {"float16", 2, true},
                                     {"bfloat16", 2, true},
                                     {"int64", 8, false},
                                     {"int32", 4, false},
                                     {"int16", 2, false},
                                     {"int8", 1, false},
                                     {"uint8", 1, false},
                                     {"uint16", 2, false},
                                     {"uint32", 4, false},
                                     {"bool", 1, false}}};

const Row& row(DType dtype) {
    return kRows.at(static_cast<size_t>(dtype));
}

}  // namespace

bool is_known(DType dtype) {
    return static_cast<size_t>(dtype) < kRows.size();
}
size_t size_of(DType dtype) {
    return row(dtype).bytes;
}
std::string_view name_of(DType dtype) {
    return row(dtype).name;
}
std::string complex_name(DType part) {
    return "complex" + std::to_string(16 * size_of(part));
}
bool is_floating(DType dtype) {
    return row(dtype).floating;
}

std::optional<DType> dtype_from_name(std::string_view name) {
    for (size_t i = 0; i < kRows.size(); ++i) {
        if (kRows[i].name == name) return static_cast<DType>(i);
    }
    return std::nullopt;
}

int64_t num_elements(const std::vector<int64_t>& shape) {
    constexpr int64_t kLimit = int64_t{1} << 62;
    int64_t product = 1;
    for (int64_t dim : shape) {
        const bool fits = dim >= 0 && (dim == 0 || product <= kLimit / dim);
        if (!fits) throw Error(ErrorKind::BadData, "the shape " + shape_text(shape) + " is not a possible one");
        product *= dim;
    }
    return product;
}

bool fills(const std::vector<int64_t>& shape, DType dtype, uint64_t num_bytes) {
    if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return num_bytes == 0;
    uint64_t rest = num_bytes / size_of(dtype);
    if (num_bytes % size_of(dtype) != 0) return false;
    for (const int64_t dim : shape) {
        if (rest % static_cast<uint64_t>(dim) != 0) return false;
        rest /= static_cast<uint64_t>(dim);
    }
    return rest == 1;
}

std::string shape_text(const std::vector<int64_t>& shape) {
    std::string text = "[";
    for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
    return text + "]";
}

}  // namespace vpp
