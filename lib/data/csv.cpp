#include "data/csv.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>

#include "base/bad_data.hpp"
#include "base/bytes.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/suggest.hpp"
#include "data/npy_writer.hpp"

namespace vpp {

namespace {

namespace fs = std::filesystem;

struct Cell {
    std::string text;
    size_t column = 0;  ///< in characters of the line, from 1
};
using Cells = std::vector<Cell>;

/// Lines of a file, one at a time.
class CsvLines {
  public:
    explicit CsvLines(const std::string& path) : file_(path) {}

    /// False at the end. Empty lines are passed over.
    bool next(Cells& cells) {
        std::string line;
        while (read_line(line)) {
            ++number_;
            if (line.ends_with('\r')) line.pop_back();
            if (line.empty()) continue;
            cells = cut(line);
            return true;
        }
        return false;
    }

    std::string place(size_t column) const {
        return file_.path().string() + ":" + std::to_string(number_) + ":" + std::to_string(column);
    }

  private:
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
        offset_ += piece_.size();
        at_ = 0;
        return !piece_.empty();
    }

    Cells cut(const std::string& line) const {
        Cells cells;
        size_t at = 0;
        while (true) {
            while (at < line.size() && (line[at] == ' ' || line[at] == '\t')) ++at;
            Cell cell{"", at + 1};
            if (at < line.size() && line[at] == '"') {
                for (++at;; ++at) {
                    if (at == line.size()) refuse_data(place(cell.column), "the quote does not end in this line");
                    if (line[at] == '"' && (at + 1 == line.size() || line[at + 1] != '"')) break;
                    if (line[at] == '"') ++at;
                    cell.text += line[at];
                }
                ++at;
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
};

template <typename T>
bool parse_number(const std::string& text, T& value) {
    const char* begin = text.data() + (text.size() > 1 && text[0] == '+' && text[1] != '-' ? 1 : 0);
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(begin, end, value);
    return error == std::errc() && stop == end;
}

struct CsvField {
    std::string name;
    std::vector<size_t> columns;
    bool whole = true;  ///< all numbers are integers
};

class CsvReader {
  public:
    explicit CsvReader(const CsvOrder& order) : order_(order), lines_(order.table) {
        if (!lines_.next(header_)) refuse_data(order.table, "the table is empty");
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
            take(cells);
        }
    }

    double number(const Cell& cell) const {
        double value = 0;
        if (!parse_number(cell.text, value) || !std::isfinite(value)) {
            refuse_data(lines_.place(cell.column), "no number (got '" + printable(cell.text) +
                                                       "'); mend it, or choose other columns with --field");
        }
        return value;
    }

  private:
    size_t find_column(const std::string& name) const {
        std::vector<std::string> names;
        for (const Cell& cell : header_) names.push_back(cell.text);
        const auto found = std::ranges::find(names, name);
        if (found != names.end()) return static_cast<size_t>(found - names.begin());
        throw Error(ErrorKind::CommandLine,
                    order_.table + " has no column '" + printable(name) + "'" + did_you_mean(name, names));
    }

    const CsvOrder& order_;
    CsvLines lines_;
    Cells header_;
};

}  // namespace

std::vector<FieldMade> make_csv_fields(const CsvOrder& order) {
    int64_t num_rows = 0;
    CsvReader first(order);
    std::vector<CsvField> fields = first.fields();
    first.read_rows([&](const Cells& cells) {
        ++num_rows;
        for (CsvField& field : fields) {
            for (const size_t column : field.columns) {
                int64_t integer = 0;
                first.number(cells[column]);
                field.whole = field.whole && parse_number(cells[column].text, integer);
            }
        }
    });
    if (num_rows == 0) refuse_data(order.table, "the table has no line of numbers behind the names");
    if (std::error_code ignored; !fs::is_directory(order.out, ignored)) {
        throw Error(ErrorKind::Output, "the folder " + order.out + " is not there; make it first");
    }
    std::vector<FieldMade> made;
    std::vector<std::unique_ptr<NpyWriter>> writers;
    for (const CsvField& field : fields) {
        const fs::path path = fs::path(order.out) / (field.name + ".npy");
        if (!order.overwrite && fs::exists(fs::symlink_status(path))) {
            throw Error(ErrorKind::Output,
                        path.string() + " is there already; name another folder, or replace it with --overwrite");
        }
        std::vector<int64_t> shape = {num_rows};
        if (field.columns.size() > 1) shape.push_back(static_cast<int64_t>(field.columns.size()));
        made.push_back({path.string(), field.whole ? DType::I64 : DType::F32, shape});
        writers.push_back(std::make_unique<NpyWriter>(path, made.back().dtype, shape));
    }
    constexpr size_t kMostPendingBytes = 1 << 16;
    std::vector<Bytes> pending(fields.size());
    const auto write = [&](size_t i) {
        writers[i]->write(pending[i]);
        pending[i].clear();
    };
    bool unchanged = true;
    CsvReader second(order);
    second.read_rows([&](const Cells& cells) {
        if (--num_rows < 0) return;
        for (size_t i = 0; i < fields.size(); ++i) {
            for (const size_t column : fields[i].columns) {
                int64_t integer = 0;
                const auto number = static_cast<float>(second.number(cells[column]));
                unchanged = unchanged && (!fields[i].whole || parse_number(cells[column].text, integer));
                const auto bytes =
                    fields[i].whole ? std::as_bytes(std::span(&integer, 1)) : std::as_bytes(std::span(&number, 1));
                pending[i].insert(pending[i].end(), bytes.begin(), bytes.end());
            }
            if (pending[i].size() >= kMostPendingBytes) write(i);
        }
    });
    if (num_rows != 0 || !unchanged) refuse_data(order.table, "the table changes while it is read");
    for (size_t i = 0; i < writers.size(); ++i) write(i);
    for (const auto& writer : writers) writer->publish();
    return made;
}

}  // namespace vpp
