#include "plan/paths.hpp"

#include <filesystem>

namespace vpp {

std::string resolved_path(const std::string& plan_file, const std::string& written) {
    return (std::filesystem::path(plan_file).parent_path() / written).string();
}

std::string written_path(const std::string& plan_file, const std::string& resolved) {
    const std::string folder = (std::filesystem::path(plan_file).parent_path() / "").string();
    if (!resolved.starts_with(folder)) return resolved;
    const std::string rest = resolved.substr(folder.size());
    return resolved_path(plan_file, rest) == resolved ? rest : resolved;
}

}  // namespace vpp
