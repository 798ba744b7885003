#include "data/csv.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <type_traits>

#include "base/bad_data.hpp"
#include "base/bytes.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/shell.hpp"
#include "base/suggest.hpp"
#include "base/utf8.hpp"
#include "data/foreign_file.hpp"
#include "data/npy_writer.hpp"

namespace vpp {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOtherSeparators = ";\t";
constexpr size_t kMostColumns = size_t{1} << 20;

/// A text of the table for a message, in quotes; the begin of a long one.
std::string shown(const std::string& text) {
    constexpr size_t kMostBytes = 60;
    return "'" + printable(beginning_of(text, kMostBytes)) + "'";
}

struct Cell {
    std::string text;
    size_t column = 0;  ///< in characters of the line, from 1
    bool is_quoted = false;
};
using Cells = std::vector<Cell>;

/// In characters of a line, for bytes that are asked for in order.
class Columns {
  public:
    explicit Columns(std::string_view line) : line_(line) {}
    size_t at(size_t byte) {
        column_ += num_characters(line_.substr(byte_, byte - byte_));
        byte_ = byte;
        return column_;
    }

  private:
    std::string_view line_;
    size_t byte_ = 0, column_ = 1;
};

/// Lines of a file, one at a time.
class CsvLines {
  public:
    explicit CsvLines(const std::string& path) : file_(path) { refuse_foreign_file(file_); }

    /// False at the end. Empty lines are passed over. Of a line of more than `most` cells one more is given.
    bool next(Cells& cells, size_t most) {
        std::string line;
        passed_over_ = 0;
        while (read_line(line)) {
            ++number_;
            if (line.ends_with('\r')) line.pop_back();
            if (line.empty()) {
                if (passed_over_ == 0) passed_over_ = number_;
                continue;
            }
            cells = cut(line, most);
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

    Cells cut(const std::string& line, size_t most) const {
        Cells cells;
        size_t at = 0;
        Columns columns(line);
        while (true) {
            while (at < line.size() && (line[at] == ' ' || line[at] == '\t')) ++at;
            Cell cell{"", columns.at(at), at < line.size() && line[at] == '"'};
            if (cell.is_quoted) {
                for (++at;; ++at) {
                    if (at == line.size()) refuse_data(place(cell.column), "the quote does not end in this line");
                    if (line[at] == '"' && (at + 1 == line.size() || line[at + 1] != '"')) break;
                    if (line[at] == '"') ++at;
                    cell.text += line[at];
                }
                ++at;
                if (at < line.size() && kOtherSeparators.find(line[at]) != std::string_view::npos) {
                    refuse_separator(line[at], columns.at(at));
                }
                if (at < line.size() && line[at] != ',') {
                    refuse_data(place(columns.at(at)), "a comma belongs behind the quote");
                }
            } else {
                while (at < line.size() && line[at] != ',') cell.text += line[at++];
            }
            while (cell.text.ends_with(' ') || cell.text.ends_with('\t')) cell.text.pop_back();
            cells.push_back(std::move(cell));
            if (at == line.size() || cells.size() > most) return cells;
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
        if (!lines_.next(header_, kMostColumns)) refuse_data(order.table, "the table is empty");
        if (header_.size() > kMostColumns) {
            refuse_data(lines_.place(1), "the first line names more than " + std::to_string(kMostColumns) +
                                             " columns; a table has a line a sample, so cut it, or turn it round");
        }
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
        std::set<std::string_view> names;
        for (const CsvField& field : fields) {
            if (!is_plain_name(field.name)) {
                refuse_data(lines_.place(1), "a field needs a name that can be a file's (got " + shown(field.name) +
                                                 "); the first line names the columns, or name fields with --field");
            }
            if (!names.insert(field.name).second) {
                refuse_data(lines_.place(1), "two fields are named " + shown(field.name));
            }
        }
        return fields;
    }

    bool has_names_of(const CsvReader& other) const {
        return std::ranges::equal(header_, other.header_, {}, &Cell::text, &Cell::text);
    }

    /// Calls with the cells of each line of numbers, all of them checked to be as many as there are names.
    void read_rows(const std::function<void(const Cells&)>& take) {
        Cells cells;
        while (lines_.next(cells, header_.size())) {
            if (cells.size() != header_.size()) refuse_number_of_cells(cells.size());
            if (header_.size() == 1) lines_.refuse_empty_lines();
            take(cells);
        }
    }

    double number(const Cell& cell) const {
        double value = 0;
        if (!parse_number(cell.text, value) || !std::isfinite(static_cast<float>(value))) {
            refuse_data(lines_.place(cell.column),
                        "no number (got " + shown(cell.text) + "); mend it, or choose other columns with --field");
        }
        return value;
    }

    std::string too_large(const Cell& cell) const {
        return lines_.place(cell.column) + ": the whole number is too large for int64 (got " + shown(cell.text) +
               "); write it with a point where float32 is meant";
    }

  private:
    [[noreturn]] void refuse_number_of_cells(size_t got) const {
        const std::string expected = std::to_string(header_.size());
        refuse_data(lines_.place(1), "the line has another number of fields than the first one (got " +
                                         (got > header_.size() ? "more than " + expected : std::to_string(got)) +
                                         ", expected " + expected + ")");
    }

    /// A first line without a comma that has others of the usual separators.
    void refuse_other_separators() const {
        if (header_.size() > 1 || header_[0].is_quoted) return;
        const std::string& text = header_[0].text;
        const size_t at = text.find_first_of(kOtherSeparators);
        if (at == std::string::npos) return;
        lines_.refuse_separator(text[at], header_[0].column + num_characters(text.substr(0, at)));
    }

    size_t find_column(const std::string& name) const {
        std::vector<std::string> names;
        for (const Cell& cell : header_) names.push_back(cell.text);
        const auto found = std::ranges::find(names, name);
        if (std::ranges::count(names, name) > 1) {
            refuse_data(lines_.place(1), "two columns are named " + shown(name) + "; name one of them anew");
        }
        if (found != names.end()) return static_cast<size_t>(found - names.begin());
        throw Error(ErrorKind::CommandLine, order_.table + " has no column " + shown(name) + did_you_mean(name, names));
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

    void finish() {
        write_pending();
        writer_->finish();
    }

    void remove_old() const { writer_->remove_old(); }

    FieldMade publish() {
        writer_->publish();
        return made_;
    }

  private:
    void write_pending() {
        writer_->write(pending_);
        pending_.clear();
    }

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

/// The folder of the fields, which is made where it is not there, and goes again with the object while it is empty.
class FieldFolder {
  public:
    explicit FieldFolder(std::string path) : path_(std::move(path)) {
        std::error_code problem, ignored;
        is_made_ = fs::create_directory(path_, problem);
        if (!fs::is_directory(path_, ignored)) refuse(problem);
    }
    ~FieldFolder() {
        std::error_code ignored;
        if (is_made_) fs::remove(path_, ignored);
    }
    FieldFolder(const FieldFolder&) = delete;
    FieldFolder& operator=(const FieldFolder&) = delete;

    /// So that it survives a crash.
    void sync() const {
        if (is_made_) sync_folder(fs::canonical(path_).parent_path());
    }

  private:
    [[noreturn]] void refuse(const std::error_code& problem) const {
        std::error_code ignored;
        if (fs::exists(fs::symlink_status(path_, ignored))) {
            throw Error(ErrorKind::Output, path_ + " is there and is no folder; name another, or FILE.bin for tokens");
        }
        if (problem == std::errc::no_such_file_or_directory) {
            throw Error(ErrorKind::Output, "the folder " + path_ + " is not there; make it first");
        }
        throw Error(kind_of_failed_creation(problem.value()),
                    "cannot make the folder " + path_ + ": " + problem.message());
    }

    std::string path_;
    bool is_made_ = false;
};

/// All files of the fields are open at once.
void check_open_files(size_t num_fields) {
    constexpr size_t kMore = 3;  // the table, which is read again, and folders
    const size_t needed = num_fields + names_in_folder("/proc/self/fd").size() + kMore;
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || needed <= limit.rlim_cur) return;
    const std::string number = std::to_string(needed);
    throw Error(ErrorKind::Output, "a table of " + std::to_string(num_fields) + " fields needs " + number +
                                       " open files, and this process may have " + std::to_string(limit.rlim_cur) +
                                       "; allow more with  ulimit -n " + number +
                                       " , or join columns to fewer fields with --field x=a,b");
}

/// Reads the table anew, which must be as it was.
void write_rows(const CsvOrder& order, const CsvReader& first, int64_t num_rows, std::vector<FieldFile>& files) {
    int64_t rows_left = num_rows;
    CsvReader reader(order);
    bool is_unchanged = reader.has_names_of(first);
    reader.read_rows([&](const Cells& cells) {
        if (--rows_left < 0 || !is_unchanged) return;
        for (FieldFile& file : files) is_unchanged = file.append(reader, cells) && is_unchanged;
    });
    if (rows_left != 0 || !is_unchanged) refuse_data(order.table, "the table changes while it is read");
}

}  // namespace

std::vector<FieldMade> make_csv_fields(const CsvOrder& order) {
    CsvReader first(order);
    std::vector<CsvField> fields = first.fields();
    check_open_files(fields.size());
    const int64_t num_rows = look_through(first, fields);
    if (num_rows == 0) refuse_data(order.table, "the table has no line of numbers behind the names");
    const FieldFolder folder(order.out);
    std::vector<FieldFile> files;
    for (const CsvField& field : fields) files.emplace_back(field, order, num_rows);
    write_rows(order, first, num_rows, files);
    for (FieldFile& file : files) file.finish();
    folder.sync();
    // In this order no new field ever lies beside an old one.
    for (const FieldFile& file : files) file.remove_old();
    std::vector<FieldMade> made;
    for (FieldFile& file : files) made.push_back(file.publish());
    return made;
}

}  // namespace vpp
