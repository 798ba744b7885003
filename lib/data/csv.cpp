#include "data/csv.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <type_traits>

#include "base/bad_data.hpp"
#include "base/bytes.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/shell.hpp"
#include "base/suggest.hpp"
#include "data/foreign_file.hpp"
#include "data/npy_writer.hpp"

namespace vpp {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOtherSeparators = ";\t";

struct Cell {
    std::string text;
    size_t column = 0;  ///< in characters of the line, from 1
    bool is_quoted = false;
};
using Cells = std::vector<Cell>;

/// Lines of a file, one at a time.
class CsvLines {
  public:
    explicit CsvLines(const std::string& path) : file_(path) { refuse_foreign_file(file_); }

    /// False at the end. Empty lines are passed over.
    bool next(Cells& cells) {
        std::string line;
        passed_over_ = 0;
        while (read_line(line)) {
            ++number_;
            if (line.ends_with('\r')) line.pop_back();
            if (line.empty()) {
                if (passed_over_ == 0) passed_over_ = number_;
                continue;
            }
            cells = cut(line);
            return true;
        }
        return false;
    }

    std::string place(size_t column) const { return place(number_, column); }

    /// For a table where an empty line is one without its value.
    void refuse_empty_lines() const {
        if (passed_over_ == 0) return;
        refuse_data(place(passed_over_, 1),
                    "an empty line in a table of one column is a missing value; write a number "
                    "there, or take the line out");
    }

    /// Requires: one of kOtherSeparators.
    [[noreturn]] void refuse_separator(char separator, size_t column) const {
        const bool is_tab = separator == '\t';
        refuse_data(place(column),
                    std::string("columns are separated by commas here, and this line has ") +
                        (is_tab ? "tabs" : "semicolons") +
                        "; put commas in their place, and points where commas were decimal points:  tr '," +
                        (is_tab ? "\\t" : ";") + "' '.,' < " + shell_quoted(file_.path().string()) + " > commas.csv");
    }

  private:
    std::string place(int64_t line, size_t column) const {
        return file_.path().string() + ":" + std::to_string(line) + ":" + std::to_string(column);
    }

    bool read_line(std::string& line) {
        bool any = false;
        while (true) {
            if (at_ == piece_.size() && !read_piece()) return any;
            any = true;
            const auto end = std::find(piece_.begin() + static_cast<std::ptrdiff_t>(at_), piece_.end(), '\n');
            line.append(piece_.begin() + static_cast<std::ptrdiff_t>(at_), end);
            at_ = static_cast<size_t>(end - piece_.begin());
            if (end == piece_.end()) continue;
            ++at_;
            return true;
        }
    }

    bool read_piece() {
        constexpr uint64_t kPiece = uint64_t{1} << 20;
        piece_.resize(static_cast<size_t>(std::min(kPiece, file_.size_bytes() - offset_)));
        file_.read(offset_, std::as_writable_bytes(std::span(piece_)));
        at_ = offset_ == 0 && piece_.starts_with("\xef\xbb\xbf") ? 3 : 0;  // a byte order mark, as Excel writes it
        offset_ += piece_.size();
        return !piece_.empty();
    }

    Cells cut(const std::string& line) const {
        Cells cells;
        size_t at = 0;
        while (true) {
            while (at < line.size() && (line[at] == ' ' || line[at] == '\t')) ++at;
            Cell cell{"", at + 1, at < line.size() && line[at] == '"'};
            if (cell.is_quoted) {
                for (++at;; ++at) {
                    if (at == line.size()) refuse_data(place(cell.column), "the quote does not end in this line");
                    if (line[at] == '"' && (at + 1 == line.size() || line[at + 1] != '"')) break;
                    if (line[at] == '"') ++at;
                    cell.text += line[at];
                }
                ++at;
                if (at < line.size() && kOtherSeparators.find(line[at]) != std::string_view::npos) {
                    refuse_separator(line[at], at + 1);
                }
                if (at < line.size() && line[at] != ',') refuse_data(place(at + 1), "a comma belongs behind the quote");
            } else {
                while (at < line.size() && line[at] != ',') cell.text += line[at++];
            }
            while (cell.text.ends_with(' ') || cell.text.ends_with('\t')) cell.text.pop_back();
            cells.push_back(std::move(cell));
            if (at == line.size()) return cells;
            ++at;
        }
    }

    InputFile file_;
    uint64_t offset_ = 0;
    std::string piece_;
    size_t at_ = 0;
    int64_t number_ = 0;
    int64_t passed_over_ = 0;  ///< the first empty line in front of the last one that was given, 0: none
};

template <typename T>
bool parse_number(const std::string& text, T& value) {
    const char* begin = text.data() + (text.size() > 1 && text[0] == '+' && text[1] != '-' ? 1 : 0);
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(begin, end, value);
    if constexpr (std::is_floating_point_v<T>) {
        // Says the same of numbers that are too large and of those too near to 0, which are 0 to other readers.
        if (error == std::errc::result_out_of_range && std::abs(std::strtod(begin, nullptr)) < 1) {
            value = 0;
            return stop == end;
        }
    }
    return error == std::errc() && stop == end;
}

/// Of a text that is a number: without point and exponent.
bool is_whole(const std::string& text) {
    return text.find_first_not_of("+-0123456789") == std::string::npos;
}

struct CsvField {
    std::string name;
    std::vector<size_t> columns;
    bool whole = true;           ///< all numbers are integers
    std::string too_large = {};  ///< what is wrong with the first of them that int64 does not hold
};

class CsvReader {
  public:
    explicit CsvReader(const CsvOrder& order) : order_(order), lines_(order.table) {
        if (!lines_.next(header_)) refuse_data(order.table, "the table is empty");
        refuse_other_separators();
        double ignored = 0;
        if (std::ranges::all_of(header_, [&](const Cell& cell) { return parse_number(cell.text, ignored); })) {
            refuse_data(lines_.place(1),
                        "all names are numbers, so that this seems to be a line of numbers; put a line of names in "
                        "front of it, or other names in its place");
        }
    }

    std::vector<CsvField> fields() const {
        std::vector<CsvField> fields;
        for (size_t i = 0; i < header_.size() && order_.fields.empty(); ++i) fields.push_back({header_[i].text, {i}});
        for (const auto& [name, columns] : order_.fields) {
            fields.push_back({name, {}});
            for (const std::string& column : columns) fields.back().columns.push_back(find_column(column));
        }
        for (size_t i = 0; i < fields.size(); ++i) {
            if (!is_plain_name(fields[i].name)) {
                refuse_data(lines_.place(1), "a field needs a name that can be a file's (got '" +
                                                 printable(fields[i].name) +
                                                 "'); the first line names the columns, or name fields with --field");
            }
            for (size_t other = 0; other < i; ++other) {
                if (fields[other].name == fields[i].name) {
                    refuse_data(lines_.place(1), "two fields are named '" + printable(fields[i].name) + "'");
                }
            }
        }
        return fields;
    }

    /// Calls with the cells of each line of numbers, all of them checked to be as many as there are names.
    void read_rows(const std::function<void(const Cells&)>& take) {
        Cells cells;
        while (lines_.next(cells)) {
            if (cells.size() != header_.size()) {
                refuse_data(lines_.place(1), "the line has another number of fields than the first one (got " +
                                                 std::to_string(cells.size()) + ", expected " +
                                                 std::to_string(header_.size()) + ")");
            }
            if (header_.size() == 1) lines_.refuse_empty_lines();
            take(cells);
        }
    }

    double number(const Cell& cell) const {
        double value = 0;
        if (!parse_number(cell.text, value) || !std::isfinite(static_cast<float>(value))) {
            refuse_data(lines_.place(cell.column), "no number (got '" + printable(cell.text) +
                                                       "'); mend it, or choose other columns with --field");
        }
        return value;
    }

    std::string too_large(const Cell& cell) const {
        return lines_.place(cell.column) + ": the whole number is too large for int64 (got '" + printable(cell.text) +
               "'); write it with a point where float32 is meant";
    }

  private:
    /// A first line without a comma that has others of the usual separators.
    void refuse_other_separators() const {
        if (header_.size() > 1 || header_[0].is_quoted) return;
        const size_t at = header_[0].text.find_first_of(kOtherSeparators);
        if (at != std::string::npos) lines_.refuse_separator(header_[0].text[at], header_[0].column + at);
    }

    size_t find_column(const std::string& name) const {
        std::vector<std::string> names;
        for (const Cell& cell : header_) names.push_back(cell.text);
        const auto found = std::ranges::find(names, name);
        if (std::ranges::count(names, name) > 1) {
            refuse_data(lines_.place(1), "two columns are named '" + printable(name) + "'; name one of them anew");
        }
        if (found != names.end()) return static_cast<size_t>(found - names.begin());
        throw Error(ErrorKind::CommandLine,
                    order_.table + " has no column '" + printable(name) + "'" + did_you_mean(name, names));
    }

    const CsvOrder& order_;
    CsvLines lines_;
    Cells header_;
};

/// Refuses what is no number; says of the field whether it is whole.
void look_at(const CsvReader& reader, const Cell& cell, CsvField& field) {
    int64_t integer = 0;
    reader.number(cell);
    field.whole = field.whole && is_whole(cell.text);
    if (field.whole && field.too_large.empty() && !parse_number(cell.text, integer)) {
        field.too_large = reader.too_large(cell);
    }
}

/// How many lines of numbers there are; says of each field whether it is whole.
int64_t look_through(CsvReader& reader, std::vector<CsvField>& fields) {
    int64_t num_rows = 0;
    reader.read_rows([&](const Cells& cells) {
        ++num_rows;
        for (CsvField& field : fields) {
            for (const size_t column : field.columns) look_at(reader, cells[column], field);
        }
    });
    for (const CsvField& field : fields) {
        if (field.whole && !field.too_large.empty()) throw Error(ErrorKind::BadData, field.too_large);
    }
    return num_rows;
}

/// A field's file that is being written; what is appended is handed on in large pieces.
class FieldFile {
  public:
    FieldFile(const CsvField& field, const CsvOrder& order, int64_t num_rows) : field_(field) {
        const fs::path path = fs::path(order.out) / (field.name + ".npy");
        if (!order.overwrite && fs::exists(fs::symlink_status(path))) {
            throw Error(ErrorKind::Output,
                        path.string() + " is there already; name another folder, or replace it with --overwrite");
        }
        made_ = {path.string(), field.whole ? DType::I64 : DType::F32, {num_rows}};
        if (field.columns.size() > 1) made_.shape.push_back(static_cast<int64_t>(field.columns.size()));
        writer_ = std::make_unique<NpyWriter>(path, made_.dtype, made_.shape);
    }

    /// Gives whether the cells are of the field's type.
    bool append(const CsvReader& reader, const Cells& cells) {
        for (const size_t column : field_.columns) {
            int64_t integer = 0;
            const auto number = static_cast<float>(reader.number(cells[column]));
            if (field_.whole && !parse_number(cells[column].text, integer)) return false;
            field_.whole ? append_bytes(integer) : append_bytes(number);
        }
        constexpr size_t kMostPendingBytes = 1 << 16;
        if (pending_.size() >= kMostPendingBytes) write_pending();
        return true;
    }

    void write_pending() {
        writer_->write(pending_);
        pending_.clear();
    }

    /// Requires: nothing is pending.
    FieldMade publish() {
        writer_->publish();
        return made_;
    }

  private:
    template <typename T>
    void append_bytes(const T& value) {
        const auto bytes = std::as_bytes(std::span(&value, 1));
        pending_.insert(pending_.end(), bytes.begin(), bytes.end());
    }

    CsvField field_;
    FieldMade made_;
    std::unique_ptr<NpyWriter> writer_;
    Bytes pending_;
};

}  // namespace

std::vector<FieldMade> make_csv_fields(const CsvOrder& order) {
    CsvReader first(order);
    std::vector<CsvField> fields = first.fields();
    const int64_t num_rows = look_through(first, fields);
    if (num_rows == 0) refuse_data(order.table, "the table has no line of numbers behind the names");
    std::error_code ignored;
    fs::create_directory(order.out, ignored);
    if (!fs::is_directory(order.out, ignored)) {
        throw Error(ErrorKind::Output, "the folder " + order.out + " is not there; make it first");
    }
    std::vector<FieldFile> files;
    for (const CsvField& field : fields) files.emplace_back(field, order, num_rows);
    int64_t rows_left = num_rows;
    bool is_unchanged = true;
    CsvReader second(order);
    second.read_rows([&](const Cells& cells) {
        if (--rows_left < 0) return;
        for (FieldFile& file : files) is_unchanged = file.append(second, cells) && is_unchanged;
    });
    if (rows_left != 0 || !is_unchanged) refuse_data(order.table, "the table changes while it is read");
    for (FieldFile& file : files) file.write_pending();
    std::vector<FieldMade> made;
    for (FieldFile& file : files) made.push_back(file.publish());
    return made;
}

}  // namespace vpp
