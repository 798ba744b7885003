#include "device/upload.hpp"

namespace vpp {

// A card copies pinned memory by itself, in its stream's turn; LibTorch keeps it until then.
at::Tensor upload(const at::Tensor& tensor, at::Device device) {
    if (!device.is_cuda()) return tensor.to(device);
    return tensor.pin_memory().to(device, /*non_blocking=*/true);
}

}  // namespace vpp
