#include "data/ranges.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.hpp"
#include "data/number_types.hpp"

namespace vpp {

namespace {

template <typename T>
std::optional<int64_t> first_outside(const ValueRange& range, std::span<const std::byte> bytes) {
    for (size_t offset = 0; offset + sizeof(T) <= bytes.size(); offset += sizeof(T)) {
        T element;
        std::memcpy(&element, bytes.data() + offset, sizeof(T));
        const auto value = static_cast<int64_t>(element);
        if ((value < range.least || value >= range.bound) && value != range.ignore_index) return value;
    }
    return std::nullopt;
}

std::optional<int64_t> first_outside(DType dtype, const ValueRange& range, std::span<const std::byte> bytes) {
    check(!is_floating(dtype), "only integer fields have a range");
    std::optional<int64_t> value;
    detail::with_number_type(dtype == DType::Bool ? DType::U8 : dtype,
                             [&](auto number) { value = first_outside<decltype(number)>(range, bytes); });
    return value;
}

/// Whether values that keep to one range keep to the other too.
bool holds(const ValueRange& one, const ValueRange& other) {
    return one.bound <= other.bound && one.least >= other.least &&
           (!one.ignore_index || one.ignore_index == other.ignore_index);
}

void replace(int64_t value, int64_t by, std::span<std::byte> bytes) {
    for (size_t offset = 0; offset + sizeof value <= bytes.size(); offset += sizeof value) {
        std::byte* element = bytes.data() + offset;
        if (std::memcmp(element, &value, sizeof value) == 0) std::memcpy(element, &by, sizeof by);
    }
}

/// Passes everything on; reads of fields with a range are checked. Where a sample has no value stands what the model
/// ignores.
class CheckedDataset : public Dataset {
  public:
    CheckedDataset(std::shared_ptr<Dataset> dataset, std::vector<ValueRange> ranges)
        : dataset_(std::move(dataset)),
          fields_(dataset_->fields()),
          ranges_(fields_.fields.size()),
          ignored_(fields_.fields.size()) {
        for (ValueRange& range : ranges) {
            const int index = fields_.find(range.field);
            check(index >= 0, "a range names a field of the data");
            Field& field = fields_.fields[static_cast<size_t>(index)];
            check(!is_floating(field.dtype) && range.bound > 0, "a range is for integers and not empty");
            std::optional<int64_t>& ignored = ignored_[static_cast<size_t>(index)];
            if (!ignored && dataset_->filler(index)) ignored = range.ignore_index;
            if (field.bound > 0 && field.bound <= range.bound) continue;
            std::vector<ValueRange>& known = ranges_[static_cast<size_t>(index)];
            if (std::any_of(known.begin(), known.end(), [&](const ValueRange& one) { return holds(one, range); })) {
                continue;
            }
            std::erase_if(known, [&](const ValueRange& one) { return holds(range, one); });
            if (!range.ignore_index && range.least == 0) field.bound = range.bound;
            known.push_back(std::move(range));
        }
    }

    const Fields& fields() const override { return fields_; }

    void read(int64_t sample, int field, std::span<std::byte> out) const override { read_draw({sample}, field, out); }

    void read_draw(const Draw& draw, int field, std::span<std::byte> out) const override {
        dataset_->read_draw(draw, field, out);
        const auto index = static_cast<size_t>(field);
        if (ignored_[index]) replace(*dataset_->filler(field), *ignored_[index], out);
        for (const ValueRange& range : ranges_[index]) {
            check_range(fields_.fields[index], range, out, where(draw.sample, field));
        }
    }

    std::string where(int64_t sample, int field) const override { return dataset_->where(sample, field); }
    int64_t stored_sample(int64_t sample) const override { return dataset_->stored_sample(sample); }
    std::vector<int64_t> file_samples() const override { return dataset_->file_samples(); }

    std::optional<int64_t> filler(int field) const override {
        const std::optional<int64_t>& ignored = ignored_[static_cast<size_t>(field)];
        return ignored ? ignored : dataset_->filler(field);
    }

    std::string digest() const override { return dataset_->digest(); }

  private:
    std::shared_ptr<Dataset> dataset_;
    Fields fields_;
    std::vector<std::vector<ValueRange>> ranges_;  // by field; none follows from another
    std::vector<std::optional<int64_t>> ignored_;  // by field: what takes the place of the filler
};

}  // namespace

void check_range(const Field& field, const ValueRange& range, std::span<const std::byte> bytes,
                 const std::string& where) {
    const std::optional<int64_t> value = first_outside(field.dtype, range, bytes);
    if (!value) return;
    const std::string ignored = range.ignore_index ? " or ignore_index " + std::to_string(*range.ignore_index) : "";
    throw Error(ErrorKind::BadData, where + ": field " + field.name + " must be in [" + std::to_string(range.least) +
                                        ", " + std::to_string(range.bound) + ")" + ignored + ", the " + range.meaning +
                                        " (got " + std::to_string(*value) +
                                        "); try a model with a larger one, or mend the data");
}

std::shared_ptr<Dataset> with_ranges(std::shared_ptr<Dataset> dataset, std::vector<ValueRange> ranges) {
    return std::make_shared<CheckedDataset>(std::move(dataset), std::move(ranges));
}

}  // namespace vpp
