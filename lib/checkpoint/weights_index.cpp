#include "checkpoint/weights_index.hpp"

#include <nlohmann/json.hpp>

#include "base/bad_data.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/json_text.hpp"
#include "base/safetensors_header.hpp"

namespace vpp {

namespace {

// Two levels are of use; the "metadata" of other writers may have more.
constexpr JsonLimits kIndexLimits{.max_depth = 8, .max_values = 2'000'000};

}  // namespace

std::map<std::string, std::string> parse_weights_index(std::string_view text, const std::string& source) {
    const nlohmann::json root = parse_json(text, kIndexLimits, source);
    const auto weight_map = root.is_object() ? root.find("weight_map") : root.end();
    if (weight_map == root.end() || !weight_map->is_object() || weight_map->empty()) {
        refuse_data(source, "no index of weights: it has no object 'weight_map' of tensors and their files");
    }
    std::map<std::string, std::string> file_of;
    for (const auto& [name, value] : weight_map->items()) {
        if (const std::string problem = name_problem(name); !problem.empty()) refuse_data(source, problem);
        const auto* file = value.get_ptr<const std::string*>();
        if (!file || !is_plain_name(*file)) {
            refuse_data(source, "the file of tensor '" + name + "' is " + printable(value.dump().substr(0, 100)) +
                                    ", expected the name of a file beside the index");
        }
        file_of.emplace(name, *file);
    }
    return file_of;
}

}  // namespace vpp
