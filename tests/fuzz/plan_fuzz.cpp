// Fuzz target: any text is a plan or an Error. The first line may be a `--set` argument, when it begins with "#set ".
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plan/reader.hpp"
#include "plan/rules.hpp"
#include "unit/plan/plan_texts.hpp"

namespace {

/// The arguments named in comments at the head of a text: "#set train.steps=5".
std::vector<std::string> overrides_of(const std::string& text) {
    const std::string mark = "#set ";
    std::vector<std::string> overrides;
    for (size_t at = 0; text.compare(at, mark.size(), mark) == 0;) {
        const size_t end = std::min(text.find('\n', at), text.size());
        overrides.push_back(text.substr(at + mark.size(), end - at - mark.size()));
        if (end == text.size()) break;
        at = end + 1;
    }
    return overrides;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    const vpp::Names names = vpp::test::built_names();
    try {
        const vpp::Plan plan = vpp::parse_plan(text, "fuzz/plan.toml", overrides_of(text), names);
        const vpp::Plan resolved = vpp::resolve_plan(plan, vpp::natural_world(plan));
        const vpp::Plan again = vpp::parse_plan(resolved.resolved_text, "fuzz/plan.toml", {}, names);
        vpp::check(again.resolved_text == resolved.resolved_text, "a resolved plan reads as another plan");
    } catch (const vpp::Error& error) {
        if (error.kind() == vpp::ErrorKind::Bug) throw;
    }
    return 0;
}
