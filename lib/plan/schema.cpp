#include "plan/schema.hpp"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "plan/key_facts.hpp"

namespace vpp {

namespace {

using Json = nlohmann::ordered_json;

/// A range ends at a whole number as an integer, since editors show what stands there.
Json json_number(double value) {
    const bool whole = std::floor(value) == value && std::abs(value) <= 1e15;
    return whole ? Json(static_cast<int64_t>(value)) : Json(value);
}

Json with_range(const char* type, const Range& range) {
    Json schema = {{"type", type}};
    if (!std::isinf(range.low)) schema[range.without_low ? "exclusiveMinimum" : "minimum"] = json_number(range.low);
    if (!std::isinf(range.high)) schema[range.without_high ? "exclusiveMaximum" : "maximum"] = json_number(range.high);
    return schema;
}

/// Texts are not empty; the path of a file that may be left out may be.
Json text_schema(bool may_be_empty) {
    Json schema = {{"type", "string"}};
    if (!may_be_empty) schema["minLength"] = 1;
    return schema;
}

Json list_of(Json items) {
    return {{"type", "array"}, {"items", std::move(items)}};
}

Json table_of(Json values) {
    return {{"type", "object"}, {"additionalProperties", std::move(values)}};
}

Json words_schema(const Key& key, const Names& names) {
    Json words = own_words(key, names);
    for (const auto& [alias, meant] : key.aliases) words.push_back(alias);
    return {{"type", "string"}, {"enum", std::move(words)}};
}

/// What parse_bytes reads (base/units.hpp).
Json size_schema(const Range& range) {
    const char* pattern = "^[0-9]{1,18}(\\.[0-9]{1,3})? ?([KMGTP]i?B|B)$";
    return {{"anyOf", {with_range("number", range), {{"type", "string"}, {"pattern", pattern}}}}};
}

Json list_of_numbers(const Key& key, const char* type) {
    Json schema = list_of(with_range(type, key.range));
    schema["minItems"] = std::max<size_t>(key.list_size, 1);
    if (key.list_size > 0) schema["maxItems"] = key.list_size;
    return schema;
}

Json integer_schema(const Key& key) {
    Json schema = with_range("integer", key.range);
    if (key.word.empty()) return schema;
    return {{"anyOf", {std::move(schema), {{"const", key.word}}}}};
}

struct ValueWriter {
    Json operator()(const NamedTexts& table) const {
        Json object = Json::object();
        for (const auto& [name, text] : table) object[name] = text;
        return object;
    }
    Json operator()(const auto& plain) const { return plain; }
};

Json value_of(const Value& value) {
    return std::visit(ValueWriter{}, value);
}

Json type_schema(const Key& key, const Names& names) {
    using enum KeyType;
    switch (key.type) {
        case Boolean:
            return {{"type", "boolean"}};
        case Integer:
            return integer_schema(key);
        case Number:
            return with_range("number", key.range);
        case Text:
            return text_schema(false);
        case Path:
            return text_schema(!key.required);
        case Choice:
        case Name:
            return words_schema(key, names);
        case TextList:
            return list_of(text_schema(false));
        case IntegerList:
            return list_of_numbers(key, "integer");
        case NumberList:
            return list_of_numbers(key, "number");
        case Files:
            return {{"anyOf", {list_of(text_schema(false)), table_of(text_schema(false))}}};
        case TextTable:
            return table_of(text_schema(false));
        case Size:
            return size_schema(key.range);
        case TableList:
            break;
    }
    return list_of(Json::object());
}

std::string description(const Key& key) {
    if (key.default_note.empty() || key.required) return key.sentence;
    return key.sentence + " Default: " + key.default_note + '.';
}

Json key_schema(const Key& key, const Names& names) {
    Json schema = {{"description", description(key)}};
    schema.update(type_schema(key, names));
    if (const auto value = default_value(key); value) schema["default"] = value_of(*value);
    if (const auto example = example_value(key, names); example && example != default_value(key)) {
        schema["examples"] = Json::array({value_of(*example)});
    }
    return schema;
}

Json section_schema(const std::string& section) {
    Json schema = {{"type", "object"}, {"additionalProperties", false}};
    if (const std::string sentence = section_sentence(section); !sentence.empty()) schema["description"] = sentence;
    schema["properties"] = Json::object();
    return schema;
}

/// The object that holds the keys of a section, made with all above it; of a list of tables, that of one table.
Json& section_object(Json& root, const std::string& section) {
    if (section.empty()) return root;
    const size_t dot = section.rfind('.');
    Json& above = section_object(root, dot == std::string::npos ? "" : section.substr(0, dot));
    Json& object = above["properties"][last_part(section)];
    if (object.is_null()) object = section_schema(section);
    if (!object.contains("items")) return object;
    if (object["items"].empty()) {
        object["items"] = section_schema(section);
        object["items"].erase("description");
    }
    return object["items"];
}

/// A section that must be there: `object` demands it and in it the key.
void require(Json& object, const Key& key) {
    object["required"].push_back(section_of(key));
    object["properties"][section_of(key)]["required"].push_back(last_part(key.name));
}

/// Whether a plan writes a key, as a condition: {"required": ["pipeline"], "properties": {"pipeline": ...}}.
Json written_condition(const std::string& name) {
    const size_t dot = name.find('.');
    const std::string first = name.substr(0, dot);
    Json condition = {{"required", Json::array({first})}};
    if (dot != std::string::npos) condition["properties"][first] = written_condition(name.substr(dot + 1));
    return condition;
}

}  // namespace

std::string plan_schema(const Names& names) {
    Json root = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                 {"title", "vpp plan"},
                 {"description", "What vpp trains, on what, how it is cut and in which order its stages work."}};
    root.update(section_schema(""));
    for (const Key& key : all_keys()) {
        const std::string section = section_of(key);
        section_object(root, section)["properties"][last_part(key.name)] = key_schema(key, names);
        if (!key.required) continue;
        if (!key.required_unless.empty()) {
            root["if"] = written_condition(key.required_unless);
            require(root["else"], key);
        } else if (section == "model" || section == "data") {
            require(root, key);
        } else {
            section_object(root, section)["required"].push_back(last_part(key.name));
        }
    }
    return root.dump(2) + '\n';
}

}  // namespace vpp
