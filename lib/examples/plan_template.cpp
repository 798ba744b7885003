#include "examples/plan_template.hpp"

#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "plan/value.hpp"

namespace vpp {

std::string fill_in(std::string_view text, const std::vector<std::pair<std::string, std::string>>& values) {
    std::string filled;
    std::set<std::string> used;
    for (size_t begin = text.find("{{"); begin != std::string_view::npos; begin = text.find("{{")) {
        const size_t end = text.find("}}", begin);
        check(end != std::string_view::npos, "every place of a template is closed");
        const std::string name(text.substr(begin + 2, end - begin - 2));
        const auto value = std::ranges::find(values, name, &std::pair<std::string, std::string>::first);
        check(value != values.end(), "every place of a template has a value: " + name);
        used.insert(name);
        filled += text.substr(0, begin);
        filled += value->second;
        text.remove_prefix(end + 2);
    }
    check(used.size() == values.size(), "every value of a template has a place");
    return filled.append(text);
}

ExampleFile plan_file(std::string_view text, const ExampleRequest& request,
                      std::vector<std::pair<std::string, std::string>> more) {
    more.emplace_back("run_dir", toml_quoted("runs/" + request.name));
    return {"plan.toml", fill_in(text, more)};
}

}  // namespace vpp
