#pragma once
// Samples of several files by weight (data.weights). A block of kBlockDraws draws has for each file its share, spread
// evenly, and all blocks are alike; draw number n of a file is sample perm(n mod N) of its epoch n div N. So a draw is
// a pure function of (seed, position), shares are exact, and no sample comes again before all others of its file came.
#include <cstdint>
#include <vector>

#include "data/dataset.hpp"

namespace vpp::detail {

class Mixture {
  public:
    /// Weights are shared out in steps of one draw of so many.
    static constexpr int64_t kBlockDraws = 10'000;

    /// Requires: as many weights as files, each at least a step of their sum (check_weights); files have samples.
    Mixture(const std::vector<int64_t>& file_samples, const std::vector<double>& weights, uint64_t seed, bool shuffle);
    /// The training's draw number `position` (0, 1, 2, ...); its epoch is the file's own.
    Draw draw(int64_t position) const;

  private:
    struct File {
        int64_t first_sample = 0, num_samples = 0;
        int64_t share = 0;  ///< draws of a block
    };
    struct Slot {
        size_t file = 0;
        int64_t before = 0;  ///< draws of that file earlier in the block
    };
    std::vector<File> files_;
    std::vector<Slot> slots_;  ///< of a block
    uint64_t seed_;
    bool shuffle_;
};

/// How many of kBlockDraws draws each weight has: the nearest whole numbers with that sum, by largest remainder.
/// Requires: at least one weight, all of them finite and over 0.
std::vector<int64_t> share_out(std::vector<double> weights);

}  // namespace vpp::detail
