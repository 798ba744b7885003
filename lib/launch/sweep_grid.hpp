#pragma once
// What `--grid key=value,value` of a sweep means: every combination of the values, as settings for --set, and a name
// for the folder of each that says them.
#include <string>
#include <vector>

#include "base/error.hpp"

namespace vpp {

/// The most combinations of a sweep; each has a folder.
inline constexpr size_t kMostCombinations = 4096;

/// One value of an axis.
struct GridValue {
    std::string text;   ///< as --set takes it
    std::string plain;  ///< the same for the name of a folder
    int column = 1;     ///< in the argument, from 1, in characters
};

/// One --grid argument.
struct GridAxis {
    std::string argument;  ///< as it was typed
    std::string key;
    std::vector<GridValue> values;
};

struct Combination {
    std::vector<std::string> settings;  ///< "optimizer.lr=0.1", one of each axis, in their order
    std::string name;                   ///< "optimizer.lr=0.1,train.seed=1": a plain file name that no shell changes
};

/// Reads the arguments. A value ends at a comma outside of brackets and quotes, so that lists can be values:
/// "optimizer.betas=[0.9,0.95],[0.9,0.99]".
/// Throws: Error{Plan} with all that is wrong with them, each with its place: no key, no value, a bracket or a quote
///         that is left open, a value or a key twice, control characters, run.dir, too many combinations.
std::vector<GridAxis> parse_grid(const std::vector<std::string>& arguments);

/// All combinations; the last axis changes fastest. One without settings when there is no axis.
std::vector<Combination> combinations_of(const std::vector<GridAxis>& axes);

/// A problem with a --set argument that came out of the grid, with its place in the --grid argument; any other problem
/// as it is.
Problem in_grid(Problem problem, const std::vector<GridAxis>& axes);

}  // namespace vpp
