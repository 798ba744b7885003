#pragma once
// Several files, one behind the other, as one run of samples.
#include <cstddef>
#include <cstdint>
#include <vector>

namespace vpp::detail {

class Concatenation {
  public:
    struct Place {
        size_t file = 0;
        int64_t sample = 0;  ///< of that file
    };

    /// The next file has so many samples.
    void add(int64_t num_samples);
    /// Of each file.
    std::vector<int64_t> file_samples() const;
    int64_t num_samples() const { return ends_.empty() ? 0 : ends_.back(); }
    /// Requires: 0 <= sample < num_samples().
    Place locate(int64_t sample) const;

  private:
    std::vector<int64_t> ends_;  // samples up to and with each file
};

}  // namespace vpp::detail
