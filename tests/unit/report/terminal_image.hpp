#pragma once
// What a terminal shows after some bytes: just enough of one for the escapes that vpp writes.
#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

namespace vpp::test {

class TerminalImage {
  public:
    explicit TerminalImage(size_t width) : width_(width) {}

    void write(const std::string& bytes) {
        for (size_t i = 0; i < bytes.size(); ++i) {
            if (bytes[i] == '\x1b') {
                i = escape(bytes, i + 1);
            } else {
                put(bytes[i]);
            }
        }
    }
    /// Rows without blanks at their ends, and without empty rows at the end.
    std::vector<std::string> rows() const {
        std::vector<std::string> shown = rows_;
        for (std::string& row : shown) row.erase(row.find_last_not_of(' ') + 1);
        while (!shown.empty() && shown.back().empty()) shown.pop_back();
        return shown;
    }
    size_t row() const { return row_; }
    size_t column() const { return column_; }
    bool wraps() const { return wraps_; }

  private:
    void put(char c) {
        if (c == '\r') {
            column_ = 0;
        } else if (c == '\n') {
            column_ = 0;
            ++row_;
        } else {
            if (column_ == width_ && wraps_) {
                column_ = 0;
                ++row_;
            }
            column_ = std::min(column_, width_ - 1);
            at(row_).resize(std::max(at(row_).size(), column_ + 1), ' ');
            at(row_)[column_++] = c;
        }
        at(row_);
    }
    size_t escape(const std::string& bytes, size_t start) {
        const size_t end = bytes.find_first_of("ABCDHJKhlm", start);
        if (end == std::string::npos) throw std::runtime_error("half an escape");
        const std::string text = bytes.substr(start, end + 1 - start);
        if (text == "[J") {
            at(row_).resize(std::min(at(row_).size(), column_));
            rows_.resize(row_ + 1);
        } else if (text == "[A") {
            row_ -= row_ > 0;
        } else if (text == "[?7l") {
            wraps_ = false;
        } else if (text == "[?7h") {
            wraps_ = true;
        } else if (text.back() != 'm') {
            throw std::runtime_error("an escape that the image does not know: " + text);
        }
        return end;
    }
    std::string& at(size_t row) {
        if (rows_.size() <= row) rows_.resize(row + 1);
        return rows_[row];
    }

    size_t width_;
    std::vector<std::string> rows_{""};
    size_t row_ = 0, column_ = 0;
    bool wraps_ = true;
};

}  // namespace vpp::test
