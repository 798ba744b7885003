#include "data/synthetic.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/random.hpp"
#include "base/suggest.hpp"
#include "data/kinds.hpp"

namespace vpp {

namespace {

constexpr size_t kMaxFieldDims = 32;
constexpr int64_t kMaxSampleElements = int64_t{1} << 32;

/// Takes "float32[3, 32, 32] < 10" apart; blanks are allowed between the parts.
class FieldParser {
  public:
    FieldParser(const std::string& name, const std::string& text) : name_(name), text_(text), rest_(text) {}

    Field parse() {
        Field field{name_, parse_dtype(), parse_shape(), 0};
        if (field.dtype == DType::Bool) field.bound = 2;
        if (accept('<')) field.bound = parse_number();
        skip_blanks();
        if (!rest_.empty()) refuse("something follows");
        check_field(field);
        return field;
    }

  private:
    DType parse_dtype() {
        const std::string word(rest_.substr(0, rest_.find_first_of(" [<")));
        rest_.remove_prefix(word.size());
        const std::vector<std::string> names{"float32", "float64", "int64", "int32", "int16", "int8", "uint8", "bool"};
        for (const std::string& name : names) {
            if (word == name) return *dtype_from_name(word);
        }
        refuse("unknown dtype '" + printable(word) + "'" + did_you_mean(word, names));
    }

    std::vector<int64_t> parse_shape() {
        std::vector<int64_t> shape;
        if (!accept('[')) refuse("the shape is missing");
        if (accept(']')) return shape;
        do {
            if (shape.size() == kMaxFieldDims) refuse("too many dims");
            shape.push_back(parse_number());
        } while (accept(','));
        if (!accept(']')) refuse("a ']' is missing");
        return shape;
    }

    int64_t parse_number() {
        skip_blanks();
        int64_t number = 0;
        const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
        if (error != std::errc() || number < 1) refuse("a whole number from 1 on is missing");
        rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
        return number;
    }

    void check_field(const Field& field) const {
        int64_t elements = 1;
        for (const int64_t dim : field.shape) {
            if (dim > kMaxSampleElements / elements) refuse("a sample is larger than 2^32 values");
            elements *= dim;
        }
        if (is_floating(field.dtype)) {
            if (field.bound != 0) refuse("only integers have a bound");
            return;
        }
        if (field.bound == 0) refuse("integers need a bound");
        const size_t value_bits = 8 * size_of(field.dtype) - (field.dtype == DType::U8 ? 0 : 1);
        const bool fits = value_bits >= 63 || field.bound <= int64_t{1} << value_bits;
        if (!fits || (field.dtype == DType::Bool && field.bound > 2)) refuse("the bound does not fit the dtype");
    }

    void skip_blanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size())); }

    bool accept(char c) {
        skip_blanks();
        if (rest_.empty() || rest_.front() != c) return false;
        rest_.remove_prefix(1);
        return true;
    }

    [[noreturn]] void refuse(const std::string& what) const {
        throw Error(ErrorKind::BadData, "synthetic field " + name_ + ": " + what + " (got '" + printable(text_) +
                                            "', expected a form like 'float32[3, 32, 32]' or 'int64[] < 10')");
    }

    const std::string& name_;
    const std::string& text_;
    std::string_view rest_;
};

/// Writes `make(bits)` as a T for every element.
template <typename T, typename Make>
void fill(int64_t sample, int field, std::span<std::byte> out, Make make) {
    for (size_t i = 0; i < out.size() / sizeof(T); ++i) {
        const auto value = static_cast<T>(make(synthetic_bits(sample, field, static_cast<int64_t>(i))));
        std::memcpy(out.data() + i * sizeof(T), &value, sizeof(T));
    }
}

class Synthetic : public Dataset {
  public:
    explicit Synthetic(Fields fields) : fields_(std::move(fields)) {}

    const Fields& fields() const override { return fields_; }

    void read(int64_t sample, int field, std::span<std::byte> out) const override {
        check_read(fields_, sample, field, out.size());
        const Field& spec = fields_.fields[static_cast<size_t>(field)];
        const auto bound = static_cast<uint64_t>(spec.bound);
        const auto below = [bound](uint64_t bits) { return bits % bound; };
        if (spec.dtype == DType::F32) return fill<float>(sample, field, out, synthetic_normal);
        if (spec.dtype == DType::F64) return fill<double>(sample, field, out, synthetic_normal);
        switch (size_of(spec.dtype)) {
            case 8:
                return fill<int64_t>(sample, field, out, below);
            case 4:
                return fill<int32_t>(sample, field, out, below);
            case 2:
                return fill<int16_t>(sample, field, out, below);
            default:
                return fill<uint8_t>(sample, field, out, below);
        }
    }

    std::string where(int64_t sample, int) const override { return "synthetic data, sample " + std::to_string(sample); }

    std::string digest() const override {
        Hasher hasher;
        hasher.add_text("synthetic");
        hasher.add_text(std::to_string(fields_.num_samples));
        for (const Field& field : fields_.fields) {
            hasher.add_text(field.name);
            hasher.add_text(name_of(field.dtype));
            hasher.add_text(shape_text(field.shape) + " < " + std::to_string(field.bound));
        }
        return to_hex(hasher.digest());
    }

  private:
    Fields fields_;
};

}  // namespace

Field parse_synthetic_field(const std::string& name, const std::string& text) {
    return FieldParser(name, text).parse();
}

uint64_t synthetic_bits(int64_t sample, int field, int64_t element) {
    const uint64_t key =
        combine_key(combine_key(mix64(0), static_cast<uint64_t>(sample)), static_cast<uint64_t>(field));
    return combine_key(key, static_cast<uint64_t>(element));
}

double synthetic_normal(uint64_t bits) {
    const uint64_t sum = (bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48);
    // Four numbers of 0..65535: mean 2 x 65535, variance 4 (65536^2 - 1) / 12.
    constexpr double kInverseDeviation = 2.6428997921303014e-05;
    return (static_cast<double>(sum) - 131070.0) * kInverseDeviation;
}

namespace detail {

std::unique_ptr<Dataset> open_synthetic(const Plan& plan, Subset subset) {
    if (subset == Subset::Validation) return nullptr;
    Fields fields;
    std::vector<Problem> problems;
    for (const auto& [name, text] : plan.data.fields) {
        try {
            fields.fields.push_back(parse_synthetic_field(name, text));
        } catch (const Error& error) {
            problems.push_back({error.problems().front().message, plan.where("data.fields." + name)});
        }
    }
    if (plan.data.fields.empty()) {
        problems.push_back({"data.kind synthetic needs the table data.fields; try [data.fields] x = \"float32[8]\"",
                            plan.where("data.fields")});
    }
    if (plan.data.samples < 1) {
        problems.push_back({"data.kind synthetic needs data.samples (got " + std::to_string(plan.data.samples) +
                                ", expected at least 1); try 1024",
                            plan.where("data.samples")});
    }
    if (!problems.empty()) throw Error(ErrorKind::Plan, std::move(problems));
    fields.num_samples = plan.data.samples;
    return std::make_unique<Synthetic>(std::move(fields));
}

}  // namespace detail

}  // namespace vpp
