#include "plan/plan.hpp"

namespace vpp {

std::optional<SourcePosition> Plan::where(const std::string& key) const {
    for (std::string above = key;;) {
        if (const auto found = positions.find(above); found != positions.end()) return found->second;
        const size_t end = above.find_last_of(".[");
        if (end == std::string::npos) return std::nullopt;
        above.resize(end);
    }
}

}  // namespace vpp
