#pragma once
// Names that differ by what stands in front: a wrapper that holds a model as `self.m` has "m." before each name of the
// model's file, and a file saved out of a wrapper has it before each name of the model.
#include <compare>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/weights_match.hpp"

namespace vpp {

struct NamePrefix {
    enum class Side { Model, File };

    Side side = Side::Model;  ///< whose names have it
    std::string text;         ///< whole components with their dots; empty: the names are the same

    /// What the file calls a weight of the model; nothing for a name that should have the prefix and has not.
    std::optional<std::string> in_file(const std::string& name) const;
    auto operator<=>(const NamePrefix&) const = default;
};

/// The only prefix with which the file has every wanted weight that may not be absent, each with its shape; where there
/// is none, the only one with which it has all of these but some that are filled from the seed.
/// Looks at headers only.
/// Throws: Error{BadData} with the nearest ones when there is none, and with all of them when there are several; of
///         the nearest one it tells both shapes of the first weight that has another in the file.
NamePrefix find_prefix(const WeightsFile& file, const std::vector<WantedWeight>& wanted);

/// For the log: who has what in front.
std::string prefix_text(const NamePrefix& prefix);

}  // namespace vpp
