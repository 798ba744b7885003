#pragma once
// The one table of all keys of a plan: type, default, range, words, one sentence, and the field of the Plan that holds
// the value. Reader, checker, explain, reference page and JSON Schema are made from it.
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plan/plan.hpp"
#include "plan/value.hpp"

namespace vpp {

enum class KeyType {
    Boolean,
    Integer,
    Number,  ///< an integer is accepted too
    Text,
    Choice,  ///< one of Key::choices
    Name,    ///< one of the words that a module further right registers (Key::names)
    Path,    ///< an input path, relative to the plan
    TextList,
    IntegerList,  ///< of Key::list_size integers
    NumberList,   ///< of Key::list_size numbers
    Files,        ///< a list of paths, or a table field = path
    TextTable,    ///< a table name = text
    Size,         ///< a number, or text: bytes with a unit
    TableList,    ///< [[tables]]; its keys are rows of their own
};

/// The words that modules further right know. `app` collects them from their registries.
struct Names {
    std::vector<std::string> datasets;       ///< data.kind
    std::vector<std::string> losses;         ///< loss.kind
    std::vector<std::string> split_methods;  ///< pipeline.split_method
    std::vector<std::string> schedules;      ///< pipeline.schedule_type
    std::vector<std::string> optimizers;     ///< optimizer.kind
    std::vector<std::string> lr_schedules;   ///< lr_schedule.kind
    std::vector<std::string> devices;        ///< mesh.device
    std::vector<std::string> transports;     ///< mesh.transport
};

/// low <= value <= high, or without the ends.
struct Range {
    double low = -std::numeric_limits<double>::infinity();
    double high = std::numeric_limits<double>::infinity();
    bool without_low = false;
    bool without_high = false;

    bool contains(double value) const;
    /// "1 to 8", "at least 1", "over 0"; empty when everything is allowed.
    std::string text() const;
};

/// A word of the design that cannot be used yet, and why.
struct PlannedWord {
    std::string word;
    std::string reason = "is not built yet";
};

/// How a value gets into the Plan and out of it. `entry` counts the tables of a TableList; elsewhere it is 0.
struct PlanField {
    /// Empty when the Plan has no value for it.
    std::optional<Value> (*get)(const Plan& plan, size_t entry) = nullptr;
    /// Requires: the Plan has the section and the entry; the value has the alternative that the key's type says.
    void (*set)(Plan& plan, size_t entry, const Value& value) = nullptr;
};

/// One row of the table.
struct Key {
    std::string name;  ///< "section.key"; keys of [[a.b]] are "a.b.key"
    KeyType type = KeyType::Text;
    std::string sentence;
    PlanField field = {};                   ///< unset for a TableList
    bool required = false;                  ///< whenever its section is written; [model] and [data] always are
    std::string required_unless = {};       ///< not required when the key of this name is written
    Range range = {};                       ///< Integer, Number, Size as a number, and each of a list of them
    std::string range_reason = {};          ///< why the range ends where it does
    size_t list_size = 0;                   ///< IntegerList, NumberList; 0 = any but none
    std::vector<std::string> choices = {};  ///< Choice: the words that can be used
    std::string word = {};                  ///< Integer: a word that may stand instead of a number
    std::vector<std::string> Names::*names = nullptr;               ///< Name
    std::vector<PlannedWord> planned = {};                          ///< Choice, Name: words that cannot be used yet
    std::vector<std::pair<std::string, std::string>> aliases = {};  ///< Choice, Name: word -> the word it stands for
    std::string default_note = {};                ///< the default in words, where it depends on other keys
    std::optional<Value> example = std::nullopt;  ///< what a plan may say, where the default shows nothing
};

/// All rows, sections in the order of the design; the keys of a TableList follow the keys beside it.
const std::vector<Key>& all_keys();
/// The row of that name, or nullptr.
const Key* find_key(std::string_view name);

/// The part before the last dot: "pipeline", "optimizer.group".
std::string section_of(const Key& key);
/// The part behind the last dot: "num_stages".
std::string last_part(std::string_view name);
/// Whether keys or sections stand under that name.
bool is_section(std::string_view name);
/// One sentence about each section, in the order of all_keys(); keys of a TableList form a section, too.
const std::vector<std::pair<std::string, std::string>>& all_sections();

/// The default as it would be written in a plan; empty when the key has none.
std::optional<Value> default_value(const Key& key);
/// The default for people: TOML text, or the note.
std::string default_text(const Key& key);
/// "integer", "list of texts", ...
std::string type_text(KeyType type);
/// The words that can be used: choices, or what is registered.
const std::vector<std::string>& usable_words(const Key& key, const Names& names);

}  // namespace vpp
