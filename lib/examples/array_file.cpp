#include "examples/array_file.hpp"

#include "base/error.hpp"
#include "data/npy_writer.hpp"

namespace vpp {

namespace {

template <typename T>
std::string file_of(DType dtype, const std::vector<int64_t>& shape, const std::vector<T>& values) {
    check(num_elements(shape) == static_cast<int64_t>(values.size()), "an array has the values of its shape");
    return npy_header(dtype, shape).append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

}  // namespace

std::string array_file(const std::vector<int64_t>& shape, const std::vector<float>& values) {
    return file_of(DType::F32, shape, values);
}

std::string array_file(const std::vector<int64_t>& shape, const std::vector<int64_t>& values) {
    return file_of(DType::I64, shape, values);
}

}  // namespace vpp
