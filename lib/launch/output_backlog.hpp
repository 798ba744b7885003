#pragma once
// What a job has printed and its reader has not taken yet: bytes in their order, and never more than a bound.
#include <cstdint>
#include <string>
#include <string_view>

namespace vpp {

/// Beyond the bound live lines that were drawn over go first, as nobody misses them; then the oldest lines, of which
/// the reader is told how many.
class OutputBacklog {
  public:
    explicit OutputBacklog(size_t most_bytes = size_t{512} << 10) : most_bytes_(most_bytes) {}

    void append(std::string_view text);
    bool is_empty() const { return text_.empty() && note_.empty() && num_left_out_ == 0; }
    /// What is to be written next.
    std::string_view next();
    /// So many bytes of it were written.
    void take_off(size_t bytes);
    void clear() { *this = OutputBacklog(most_bytes_); }

  private:
    void shorten();

    size_t most_bytes_;
    std::string text_;
    std::string note_;            ///< stands before the text
    bool is_note_begun_ = false;  ///< some of it is written
    int64_t num_left_out_ = 0;    ///< lines that no note which was begun tells of
};

}  // namespace vpp
