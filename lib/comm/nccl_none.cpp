#include "base/error.hpp"
#include "comm/nccl.hpp"

namespace vpp {

std::string nccl_version() {
    return "";
}

std::unique_ptr<LinkMaker> make_nccl_links(int, size_t) {
    check(false, "NCCL is not compiled in: VPP_CUDA");
    return nullptr;
}

}  // namespace vpp
