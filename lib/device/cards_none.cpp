#include "device/cards.hpp"

namespace vpp {

bool has_cuda_parts() {
    return false;
}

std::vector<Card> cuda_cards() {
    return {};
}

std::string cuda_version() {
    return {};
}

}  // namespace vpp
