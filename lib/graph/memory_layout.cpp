#include "graph/memory_layout.hpp"

#include <algorithm>
#include <numeric>

namespace vpp {

int64_t memory_extent(at::IntArrayRef sizes, at::IntArrayRef strides) {
    int64_t extent = 1;
    for (size_t i = 0; i < sizes.size(); ++i) {
        if (sizes[i] == 0) return 0;
        extent += (sizes[i] - 1) * strides[i];
    }
    return extent;
}

bool overlaps(at::IntArrayRef sizes, at::IntArrayRef strides) {
    std::vector<size_t> order(sizes.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return strides[a] < strides[b]; });
    int64_t extent = 1;
    for (size_t dim : order) {
        if (sizes[dim] <= 1) continue;
        if (strides[dim] < extent) return true;
        extent += (sizes[dim] - 1) * strides[dim];
    }
    return false;
}

std::vector<int64_t> base_sizes_of(const at::Tensor& tensor) {
    std::vector<int64_t> sizes = tensor.sizes().vec();
    for (size_t i = 0; i < sizes.size(); ++i) {
        if (tensor.strides()[i] == 0 && sizes[i] > 1) sizes[i] = 1;
    }
    return sizes;
}

int64_t payload_bytes_of(const at::Tensor& tensor) {
    const std::vector<int64_t> sizes = base_sizes_of(tensor);
    const int64_t extent = overlaps(sizes, tensor.strides()) ? memory_extent(sizes, tensor.strides()) : 0;
    return std::max(extent, tensor.numel()) * static_cast<int64_t>(tensor.itemsize());
}

}  // namespace vpp
