#include "launch/output_backlog.hpp"

#include <algorithm>

#include "base/units.hpp"
#include "report/screen.hpp"

namespace vpp {

namespace {

/// The line before it may have been written in part.
std::string note_of(int64_t num_left_out) {
    return "\nvpp: " + counted_text(num_left_out, "line") + " left out here: the terminal stood still\n";
}

}  // namespace

void OutputBacklog::append(std::string_view text) {
    text_ += text;
    if (text_.size() > most_bytes_) shorten();
}

std::string_view OutputBacklog::next() {
    if (num_left_out_ > 0 && !is_note_begun_) note_ = note_of(num_left_out_);
    return note_.empty() ? text_ : note_;
}

void OutputBacklog::take_off(size_t bytes) {
    if (bytes == 0) return;
    if (note_.empty()) {
        text_.erase(0, bytes);
        return;
    }
    if (!is_note_begun_) num_left_out_ = 0;
    note_.erase(0, bytes);
    is_note_begun_ = !note_.empty();
}

// To half of the bound, so that not every piece that comes is work.
void OutputBacklog::shorten() {
    text_ = without_old_live_lines(text_);
    const size_t kept = most_bytes_ / 2;
    if (text_.size() <= kept) return;
    const size_t begin = text_.size() - kept, end_of_line = text_.find('\n', begin);
    const size_t cut = end_of_line == std::string::npos ? begin : end_of_line + 1;
    const int64_t lines = std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(cut), '\n');
    num_left_out_ += std::max<int64_t>(lines, 1);
    text_.erase(0, cut);
}

}  // namespace vpp
