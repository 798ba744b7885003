#pragma once
// What there is to say about a key of the plan, in words: the one text behind `vpp explain` and the reference page.
#include <string>
#include <utility>
#include <vector>

#include "plan/keys.hpp"

namespace vpp {

/// One line about a key: a label such as "default", and what stands behind it.
struct Fact {
    std::string label;
    std::string text;
};

/// All facts about a key but its name, sentence and example, in the order in which they are shown: type, default, range
/// or words, aliases, words that cannot be used yet, when it must be written.
std::vector<Fact> key_facts(const Key& key, const Names& names);

/// A value that a plan may say; empty for a list of tables.
std::optional<Value> example_value(const Key& key, const Names& names);

/// The example as lines of a plan, without the section: `num_stages = 4`. A list too long for `columns` stands on lines
/// of its own. For a list of tables: its header and the keys that each table must have. Empty when there is no example.
std::vector<std::string> example_lines(const Key& key, const Names& names, size_t columns);

/// "[pipeline]", "[[optimizer.group]]"
std::string section_header(const std::string& section);

/// The sentence of a section; empty for a name that is none.
std::string section_sentence(const std::string& section);

/// The keys that stand in a section itself, in the order of the table.
std::vector<const Key*> keys_of(const std::string& section);

/// The words that can be used, without those that are aliases of others, which a registry may list too.
std::vector<std::string> own_words(const Key& key, const Names& names);

/// The words joined: "a, b, c".
std::string joined_words(const std::vector<std::string>& words);

}  // namespace vpp
