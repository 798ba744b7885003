#include "checkpoint/going_on.hpp"

namespace vpp {

std::string how_to_go_on(const std::string& resume) {
    return resume == "auto" ? "the same command goes on" : "the same command with --set checkpoint.resume=auto goes on";
}

}  // namespace vpp
