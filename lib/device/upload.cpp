#include "device/upload.hpp"

namespace vpp {

// A card copies pinned memory by itself, in its stream's turn; LibTorch keeps it until then.
at::Tensor upload(const at::Tensor& tensor, at::Device device, std::vector<at::Tensor>* kept) {
    if (!device.is_cuda()) return tensor.to(device);
    const at::Tensor pinned = tensor.pin_memory();
    if (kept != nullptr) kept->push_back(pinned);
    return pinned.to(device, /*non_blocking=*/true);
}

}  // namespace vpp
