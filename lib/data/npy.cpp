#include "data/npy.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>

#include "base/bad_data.hpp"
#include "base/error.hpp"

namespace vpp {

namespace {

static_assert(std::endian::native == std::endian::little, "the data are read as they lie on disk");

constexpr std::string_view kMagic = "\x93NUMPY";
// A header of plain numbers has about 120 bytes; NumPy itself refuses more than 10,000.
constexpr size_t kMaxHeaderBytes = 10'000;
static_assert(kMaxNpyBeginBytes == kMagic.size() + 2 + sizeof(uint32_t) + kMaxHeaderBytes);
constexpr size_t kMaxDims = 32;

struct DTypeCode {
    std::string_view code;  // without the byte order
    DType dtype;
};

constexpr std::array<DTypeCode, 11> kCodes{{{"f4", DType::F32},
                                            {"f8", DType::F64},
                                            {"f2", DType::F16},
                                            {"i8", DType::I64},
                                            {"i4", DType::I32},
                                            {"i2", DType::I16},
                                            {"i1", DType::I8},
                                            {"u1", DType::U8},
                                            {"u2", DType::U16},
                                            {"u4", DType::U32},
                                            {"b1", DType::Bool}}};

/// What an array of numbers becomes that are read, by the letter of its kind: unsigned, signed, dates, times.
std::string_view remedy_code(std::string_view code) {
    return !code.empty() && std::string_view("uiMm").find(code.front()) != std::string_view::npos ? "i8" : "f4";
}

DType parse_dtype(std::string_view descr, const std::string& source) {
    const std::string shown = "'" + printable(descr) + "'";
    if (!descr.empty() && descr.back() == 'O') {
        refuse_data(source, "arrays of Python objects are not read; try np.save of array.astype('float32')");
    }
    const char order = descr.empty() ? '\0' : descr.front();
    if (order == '>') {
        const auto same = std::ranges::find(kCodes, descr.substr(1), &DTypeCode::code);
        refuse_data(source, "big-endian values are not read (got " + shown + "); try array.astype('<" +
                                std::string(same == kCodes.end() ? remedy_code(descr.substr(1)) : same->code) + "')");
    }
    for (const DTypeCode& row : kCodes) {
        const bool order_fits = order == '<' || (order == '|' && size_of(row.dtype) == 1);
        if (order_fits && descr.substr(1) == row.code) return row.dtype;
    }
    const bool is_whole = !descr.empty() && remedy_code(descr.substr(1)) == "i8";
    refuse_data(source, "unknown dtype (got " + shown + ", expected f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 or bool); " +
                            "try array.astype('" + (is_whole ? "int64" : "float32") + "')");
}

/// Reads the one form of Python literal that a header has.
class HeaderParser {
  public:
    HeaderParser(std::string_view text, const std::string& source) : rest_(text), source_(source) {}

    NpyHeader parse() {
        expect('{');
        while (!accept('}')) {
            const std::string_view key = parse_text();
            expect(':');
            parse_entry(key);
            if (!accept(',')) {
                expect('}');
                break;
            }
        }
        skip_blanks();
        if (!rest_.empty()) damaged("something follows it");
        if (!dtype_ || !fortran_order_ || !shape_) damaged("descr, fortran_order or shape is not there");
        if (*fortran_order_)
            refuse_data(source_, "Fortran order is not read; try np.save of np.ascontiguousarray(array)");
        return {*dtype_, std::move(*shape_)};
    }

  private:
    void parse_entry(std::string_view key) {
        if (key == "descr" && !dtype_) {
            if (peek() == '[') refuse_data(source_, "structured arrays are not read; try one .npy file for each field");
            dtype_ = parse_dtype(parse_text(), source_);
        } else if (key == "fortran_order" && !fortran_order_) {
            fortran_order_ = parse_bool();
        } else if (key == "shape" && !shape_) {
            shape_ = parse_shape();
        } else {
            damaged("an entry is unknown or doubled (got '" + printable(key) + "')");
        }
    }

    std::string_view parse_text() {
        const char quote = peek();
        if (quote != '\'' && quote != '"') damaged("a text is missing");
        const size_t end = rest_.find(quote, 1);
        if (end == std::string_view::npos) damaged("a text does not end");
        const std::string_view text = rest_.substr(1, end - 1);
        rest_.remove_prefix(end + 1);
        return text;
    }

    bool parse_bool() {
        skip_blanks();
        for (const std::string_view word : {std::string_view("True"), std::string_view("False")}) {
            if (!rest_.starts_with(word)) continue;
            rest_.remove_prefix(word.size());
            return word == "True";
        }
        damaged("fortran_order is neither True nor False");
    }

    std::vector<int64_t> parse_shape() {
        std::vector<int64_t> shape;
        expect('(');
        while (!accept(')')) {
            skip_blanks();
            int64_t dim = 0;
            const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), dim);
            if (error != std::errc() || dim < 0 || shape.size() == kMaxDims) damaged("the shape is not a possible one");
            rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
            shape.push_back(dim);
            if (!accept(',')) {
                expect(')');
                break;
            }
        }
        return shape;
    }

    void skip_blanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \n"), rest_.size())); }

    char peek() {
        skip_blanks();
        return rest_.empty() ? '\0' : rest_.front();
    }

    bool accept(char c) {
        if (rest_.empty() || peek() != c) return false;
        rest_.remove_prefix(1);
        return true;
    }

    void expect(char c) {
        if (!accept(c)) damaged(std::string("a '") + c + "' is missing");
    }

    [[noreturn]] void damaged(const std::string& what) const {
        refuse_data(source_, "the .npy header is damaged: " + what + "; try np.save again");
    }

    std::string_view rest_;
    const std::string& source_;
    std::optional<DType> dtype_;
    std::optional<bool> fortran_order_;
    std::optional<std::vector<int64_t>> shape_;
};

/// The header's text and, through `offset_bytes`, where the data begin. `file`: its beginning.
std::string_view find_npy_header(std::string_view file, const std::string& source, uint64_t& offset_bytes) {
    if (!file.starts_with(kMagic)) refuse_data(source, "not a .npy file: the first bytes are not NumPy's; try np.save");
    const size_t version_at = kMagic.size(), length_at = version_at + 2;
    if (file.size() < length_at + sizeof(uint32_t))
        refuse_data(source, "the .npy header is cut short; copy the file anew");
    const int version = static_cast<unsigned char>(file[version_at]);
    if (version < 1 || version > 3) {
        refuse_data(source, "unknown .npy version (got " + std::to_string(version) + ", expected 1, 2 or 3)");
    }
    const size_t length_bytes = version == 1 ? sizeof(uint16_t) : sizeof(uint32_t);
    uint32_t length = 0;
    std::memcpy(&length, file.data() + length_at, length_bytes);
    if (length > kMaxHeaderBytes) {
        refuse_data(source, "the .npy header is too long (got " + std::to_string(length) + " bytes, expected at most " +
                                std::to_string(kMaxHeaderBytes) + ")");
    }
    offset_bytes = length_at + length_bytes + length;
    if (offset_bytes > file.size()) refuse_data(source, "the .npy header is cut short; copy the file anew");
    return file.substr(length_at + length_bytes, length);
}

}  // namespace

NpyHeader parse_npy_header(std::string_view text, const std::string& source) {
    return HeaderParser(text, source).parse();
}

NpyLayout npy_layout(std::string_view begin, uint64_t size_bytes, const std::string& source) {
    if (size_bytes == 0) refuse_data(source, "the file is empty");
    NpyLayout layout;
    layout.header = parse_npy_header(find_npy_header(begin, source, layout.offset_bytes), source);
    const uint64_t held = size_bytes - layout.offset_bytes;
    if (!fills(layout.header.shape, layout.header.dtype, held)) {
        refuse_data(source, "the .npy header does not fit the file (got shape " + shape_text(layout.header.shape) +
                                " of " + std::string(name_of(layout.header.dtype)) + ", and " + std::to_string(held) +
                                " bytes of data); the file is cut short or damaged");
    }
    return layout;
}

NpyFile::NpyFile(const std::string& path) : file_(path) {
    std::string begin(std::min<uint64_t>(file_.size_bytes(), kMaxNpyBeginBytes), '\0');
    file_.read(0, std::as_writable_bytes(std::span(begin)));
    NpyLayout layout = npy_layout(begin, file_.size_bytes(), path);
    header_ = std::move(layout.header);
    offset_bytes_ = layout.offset_bytes;
}

}  // namespace vpp
