#pragma once
// Tables with one row a kind: what is asked of a kind before the module that makes it is reached. A row begins with its
// `kind`, a word of the plan. The kinds are registered further right, and the tests of each registry hold both lists to
// each other.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace vpp {

/// The row of a kind.
/// Requires: it has one; the words of a plan are checked where it is read.
template <typename Row>
const Row& row_of(const std::vector<Row>& rows, std::string_view kind) {
    const auto row = std::ranges::find(rows, kind, [](const Row& one) { return std::string_view(one.kind); });
    check(row != rows.end(), "every kind has a row in the tables of the plan's rules");
    return *row;
}

/// The kinds of the rows that `holds` says yes to, in their order.
template <typename Row, typename Predicate>
std::vector<std::string> kinds_where(const std::vector<Row>& rows, const Predicate& holds) {
    std::vector<std::string> kinds;
    for (const Row& row : rows) {
        if (holds(row)) kinds.emplace_back(row.kind);
    }
    return kinds;
}

/// The kinds of all rows.
template <typename Row>
std::vector<std::string> kinds_of(const std::vector<Row>& rows) {
    return kinds_where(rows, [](const Row&) { return true; });
}

}  // namespace vpp
