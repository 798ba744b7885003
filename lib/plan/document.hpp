#pragma once
// A TOML text as a tree of plain values, each with its place: the one door to the TOML library, which no other file of
// the project includes. Whoever parses here has checked the bounds (plan/bounds.hpp) or leaves it to these functions.
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace vpp {

/// A place in one of several texts: the plan file or a `--set` argument.
struct Place {
    int source = 0;  ///< index into PlanSources
    int line = 0;    ///< from 1; 0 = the text as a whole
    int column = 0;  ///< from 1, counts characters
    auto operator<=>(const Place&) const = default;
};

/// The texts that a plan is made of: the file first, then the arguments in their order.
class PlanSources {
  public:
    /// Keeps a copy of the text; returns its index.
    int add(std::string name, std::string text);
    /// The place with the line's text; lines over 4096 bytes are left out, as nobody could read them.
    SourcePosition position(const Place& place) const;

  private:
    struct Source {
        std::string name;
        std::string text;
        std::vector<size_t> line_starts;
    };
    std::vector<Source> sources_;
};

/// One value of the tree. A table holds its entries as children with keys, in the order in which they were written.
struct Node {
    enum class Kind { Boolean, Integer, Number, Text, Date, Array, Table };
    Kind kind = Kind::Table;
    Place place;      ///< of the value
    std::string key;  ///< empty in arrays and for the root
    Place key_place;
    bool boolean = false;
    int64_t integer = 0;
    double number = 0;
    std::string text;
    std::vector<Node> children;

    /// The entry of a table with that key, or nullptr.
    Node* find(std::string_view name);
};

/// The most values that a plan may hold; keeps the positions of all of them small.
inline constexpr size_t kPlanLimitValues = 10'000;

/// Parses a whole document; `name` is added to `sources` and stands in every place of the tree.
/// Throws: Error{Plan} with the first place where the text breaks a bound or is not TOML.
Node parse_document(PlanSources& sources, const std::string& name, std::string_view text);

/// Parses one TOML value that stands in an argument, `column` characters into it; empty when it is not a TOML value.
std::optional<Node> parse_value(std::string_view text, const Place& start);

}  // namespace vpp
