#pragma once
// Sizes that a model has written into it, as a mask or a table of positions has: where it refuses a shape that was
// tried, its error names them.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "data/fields.hpp"

namespace vpp {

/// How long the dimensions of inputs may be that nothing in forward tells, the likeliest first.
struct LikelySizes {
    std::vector<int64_t> lengths{16, 8, 32, 64, 128, 4};      ///< of sequences
    std::vector<int64_t> sides{32, 28, 224, 64, 8, 16, 128};  ///< of images
};

/// Learns from what fails.
class SizeHints {
  public:
    /// Takes in why forward failed with a sample of these fields.
    void learn(const std::string& problem, const std::vector<Field>& fields);

    bool empty() const { return lengths_.empty() && refused_.empty(); }
    /// What to try next; those that are likely anyway where nothing was named.
    LikelySizes sizes() const;

  private:
    /// An image that gave another number of values than was wanted behind it.
    struct RefusedImage {
        int64_t side, given, wanted;
    };
    std::vector<int64_t> sides() const;

    std::map<int64_t, int> lengths_;  ///< how often each was named
    std::vector<RefusedImage> refused_;
};

}  // namespace vpp
