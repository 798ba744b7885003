#include "plan/keys.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "plan/key_rows.hpp"

namespace vpp {

namespace {

std::string end_text(double value) {
    const bool whole = std::floor(value) == value && std::abs(value) <= 1e15;
    return whole ? std::to_string(static_cast<int64_t>(value)) : toml_text(value);
}

}  // namespace

bool Range::contains(double value) const {
    return (without_low ? value > low : value >= low) && (without_high ? value < high : value <= high);
}

std::string Range::text() const {
    const std::string above = (without_low ? "over " : "at least ") + end_text(low);
    const std::string below = (without_high ? "below " : "at most ") + end_text(high);
    if (std::isinf(low)) return std::isinf(high) ? "" : below;
    if (std::isinf(high)) return above;
    if (without_low || without_high) return above + " and " + below;
    return low == high ? end_text(low) : end_text(low) + " to " + end_text(high);
}

const std::vector<Key>& all_keys() {
    static const std::vector<Key> keys = detail::make_key_rows();
    return keys;
}

const Key* find_key(std::string_view name) {
    const auto found = std::ranges::find(all_keys(), name, &Key::name);
    return found == all_keys().end() ? nullptr : &*found;
}

std::string section_of(const Key& key) {
    return key.name.substr(0, key.name.rfind('.'));
}

std::string last_part(std::string_view name) {
    return std::string(name.substr(name.rfind('.') + 1));
}

bool is_section(std::string_view name) {
    const std::string prefix = std::string(name) + '.';
    return std::ranges::any_of(all_keys(), [&](const Key& key) { return key.name.starts_with(prefix); });
}

const std::vector<std::pair<std::string, std::string>>& all_sections() {
    static const std::vector<std::pair<std::string, std::string>> kSections = {
        {"model", "The model file, and what is taken from it."},
        {"model.init", "Parameters filled from the seed instead of being read; the first table that matches counts."},
        {"loss", "A loss for a model whose forward does not return one; leave it out else."},
        {"data", "What is trained on and evaluated on."},
        {"data.transform",
         "A table for each field that is changed when it is read: resize, crop, flip, scale, mean and "
         "std, in this order."},
        {"mesh", "How the ranks of the job are used: pipeline, replicas, threads."},
        {"pipeline", "Where the model is cut into stages, and in which order they work."},
        {"pipeline.search", "The search for a schedule with schedule_type = \"AUTO\"."},
        {"pipeline.recompute", "What is computed again in backward, to hold fewer activations."},
        {"pipeline.stage", "A table for each stage with mode = \"MANUAL_EAGER\", in their order."},
        {"optimizer", "The update rule and its numbers."},
        {"optimizer.group", "Numbers of their own for some parameters; the first group that matches counts."},
        {"lr_schedule", "How the learning rate goes over the steps."},
        {"train", "How long, with how large batches, how exactly, and what to do when it goes wrong."},
        {"eval", "What an evaluation shows."},
        {"run", "The run folder and the deadlines of the job."},
        {"checkpoint", "When the state is saved, what stays, and what a run goes on from."},
        {"report", "What a run says about itself."},
    };
    return kSections;
}

std::optional<Value> default_value(const Key& key) {
    if (!key.field.get || key.required || !key.default_note.empty()) return std::nullopt;
    const auto plan = std::make_unique<Plan>();  // on the stack GCC 12 warns of an uninitialized loss
    if (key.name.starts_with("loss.")) plan->loss.emplace();
    if (key.name.starts_with("data.transform.")) plan->data.transforms.resize(1);
    return key.field.get(*plan, 0);
}

std::string default_text(const Key& key) {
    if (!key.default_note.empty()) return key.default_note;
    const auto value = default_value(key);
    return value ? toml_text(*value) : key.required ? "required" : "none";
}

std::string type_text(KeyType type) {
    using enum KeyType;
    switch (type) {
        case Boolean:
            return "boolean";
        case Integer:
            return "integer";
        case Number:
            return "number";
        case Text:
            return "text";
        case Choice:
        case Name:
            return "word";
        case Path:
            return "path";
        case TextList:
            return "list of texts";
        case IntegerList:
            return "list of integers";
        case NumberList:
            return "list of numbers";
        case Files:
            return "list of paths or table of paths";
        case TextTable:
            return "table of texts";
        case Size:
            return "number or text with a unit";
        case TableList:
            return "list of tables";
    }
    return "";
}

const std::vector<std::string>& usable_words(const Key& key, const Names& names) {
    return key.names ? names.*key.names : key.choices;
}

}  // namespace vpp
