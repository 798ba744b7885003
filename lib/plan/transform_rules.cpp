#include "plan/transform_rules.hpp"

#include <cmath>
#include <set>

#include "plan/value.hpp"

namespace vpp {

namespace {

constexpr double kSmallestScale = 1e-37;  // closer to 0, float32 has fewer digits, or just 0

void check_transform(const TransformPlan& transform, const std::string& table, Findings& findings) {
    const bool changes = !transform.resize.empty() || !transform.crop.empty() || transform.flip > 0 ||
                         transform.scale != 1 || !transform.mean.empty() || !transform.deviation.empty();
    if (!changes) {
        findings.add(table + ".field", table + " changes nothing; name resize, crop, flip, scale, or mean and std");
    }
    if (std::abs(transform.scale) < kSmallestScale) {
        findings.add(table + ".scale", table + ".scale is out of range (got " + toml_text(transform.scale) +
                                           ", expected at least 1e-37, or at most -1e-37)");
    }
    if (transform.mean.size() != transform.deviation.size()) {
        findings.add(table + (transform.mean.empty() ? ".std" : ".mean"),
                     table + " needs as many numbers of std as of mean (got " +
                         std::to_string(transform.deviation.size()) + " and " + std::to_string(transform.mean.size()) +
                         "); mean = [0.0] and std = [1.0] change nothing");
    }
    if (transform.pad > 0 && transform.crop.empty()) {
        findings.add(table + ".pad", table + ".pad needs crop: it is what a crop may take in");
    }
}

}  // namespace

void check_transforms(const Plan& plan, Findings& findings) {
    std::set<std::string> fields;
    for (size_t i = 0; i < plan.data.transforms.size(); ++i) {
        const TransformPlan& transform = plan.data.transforms[i];
        const std::string table = "data.transform[" + std::to_string(i) + ']';
        check_transform(transform, table, findings);
        if (fields.insert(transform.field).second) continue;
        findings.add(table + ".field",
                     table + ".field names '" + transform.field + "' again; write one table for a field");
    }
}

}  // namespace vpp
