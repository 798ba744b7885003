#include "data/field_transform.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "data/number_types.hpp"

namespace vpp::detail {

namespace {

/// False for types whose values are no plain numbers here.
bool has_numbers(DType dtype) {
    return with_number_type(dtype, [](auto) {});
}

/// Requires: has_numbers.
void widen_to_float(DType dtype, std::span<const std::byte> stored, std::span<float> out) {
    with_number_type(dtype, [&](auto value) {
        for (size_t i = 0; i < out.size(); ++i) {
            std::memcpy(&value, stored.data() + i * sizeof value, sizeof value);
            out[i] = static_cast<float>(value);
        }
    });
}

/// Keyed and even over [0, 1).
double fraction(uint64_t key, uint64_t number) {
    return static_cast<double>(combine_key(key, number) >> 11) * 0x1p-53;
}

/// Keyed and even over first, ..., last.
int64_t place(uint64_t key, uint64_t number, int64_t first, int64_t last) {
    return first + static_cast<int64_t>(fraction(key, number) * static_cast<double>(last - first + 1));
}

/// Where a window begins whose middle is that of the plane, as torchvision's CenterCrop has it: half values go to the
/// even one, as Python's round does it; of a border with an odd number of zeros the lesser half comes first.
int64_t middle(int64_t from, int64_t to) {
    if (to > from) return -((to - from) / 2);
    return static_cast<int64_t>(std::nearbyint(static_cast<double>(from - to) / 2));
}

std::vector<float> to_floats(const std::vector<double>& numbers) {
    return {numbers.begin(), numbers.end()};
}

PlaneSize plane_of(const std::vector<int64_t>& sides) {
    return {sides[0], sides[1]};
}

}  // namespace

FieldTransform::FieldTransform(const Plan& plan, size_t index, const Field& stored)
    : plan_(plan.data.transforms.at(index)), stored_dtype_(stored.dtype), field_(stored) {
    const std::string where = "data.transform[" + std::to_string(index) + "]";
    has_floats_ = !plan_.resize.empty() || plan_.scale != 1 || !plan_.mean.empty();
    has_window_ = !plan_.crop.empty() || plan_.flip > 0;
    check(has_floats_ || has_window_, "a transform changes something");
    if (has_window_ || !plan_.resize.empty()) take_picture(plan, where);
    if (has_floats_) take_numbers(plan, where);
}

void FieldTransform::take_picture(const Plan& plan, const std::string& where) {
    const size_t dims = field_.shape.size();
    if (dims < 2) {
        throw Error(ErrorKind::Plan,
                    where + ": resize, crop and flip are for pictures, [..., height, width] (got field " + field_.name +
                        " of shape " + shape_text(field_.shape) + ")",
                    plan.where(where + ".field"));
    }
    stored_size_ = {field_.shape[dims - 2], field_.shape[dims - 1]};
    resized_size_ = plan_.resize.empty() ? stored_size_ : plane_of(plan_.resize);
    size_ = plan_.crop.empty() ? resized_size_ : plane_of(plan_.crop);
    const PlaneSize most{resized_size_.height + 2 * plan_.pad, resized_size_.width + 2 * plan_.pad};
    if (size_.height > most.height || size_.width > most.width) {
        throw Error(ErrorKind::Plan,
                    where + ": the crop is larger than the picture (got " + shape_text(plan_.crop) +
                        ", expected at most " + shape_text({most.height, most.width}) + " of field " + field_.name +
                        "); try pad or resize",
                    plan.where(where + ".crop"));
    }
    field_.shape[dims - 2] = size_.height;
    field_.shape[dims - 1] = size_.width;
}

void FieldTransform::take_numbers(const Plan& plan, const std::string& where) {
    if (!has_numbers(stored_dtype_)) {
        throw Error(ErrorKind::Plan,
                    where + ": resize, scale, mean and std are for integers, float32 and float64 (got field " +
                        field_.name + " of " + std::string(name_of(stored_dtype_)) + ")",
                    plan.where(where + ".field"));
    }
    field_.dtype = DType::F32;
    field_.bound = 0;
    mean_ = to_floats(plan_.mean);
    deviation_ = to_floats(plan_.deviation);
    const int64_t first_dim = field_.shape.empty() ? 1 : field_.shape.front();
    if (mean_.size() > 1 && static_cast<int64_t>(mean_.size()) != first_dim) {
        throw Error(ErrorKind::Plan,
                    where + ": mean and std are one number, or one for each channel (got " +
                        std::to_string(mean_.size()) + ", expected 1 or " + std::to_string(first_dim) + " for field " +
                        field_.name + " of shape " + shape_text(field_.shape) + ")",
                    plan.where(where + ".mean"));
    }
}

Window FieldTransform::window(std::optional<uint64_t> key) const {
    if (!key) return {middle(resized_size_.height, size_.height), middle(resized_size_.width, size_.width)};
    const int64_t pad = plan_.pad;
    return {place(*key, 0, -pad, resized_size_.height + pad - size_.height),
            place(*key, 1, -pad, resized_size_.width + pad - size_.width), fraction(*key, 2) < plan_.flip};
}

void FieldTransform::change_numbers(std::span<float> values) const {
    if (plan_.scale != 1) {
        for (float& value : values) value = static_cast<float>(static_cast<double>(value) * plan_.scale);
    }
    if (mean_.empty()) return;
    const size_t run = values.size() / mean_.size();
    for (size_t i = 0; i < values.size(); ++i) values[i] = (values[i] - mean_[i / run]) / deviation_[i / run];
}

void FieldTransform::apply(std::span<const std::byte> stored, std::optional<uint64_t> key,
                           std::span<std::byte> out) const {
    if (!has_floats_) {
        return copy_window(stored, stored_size_, window(key), size_, size_of(stored_dtype_), out);
    }
    std::vector<float> values(stored.size() / size_of(stored_dtype_));
    widen_to_float(stored_dtype_, stored, values);
    if (!plan_.resize.empty()) {
        const size_t num_planes = values.size() / static_cast<size_t>(stored_size_.num_values());
        std::vector<float> resized(num_planes * static_cast<size_t>(resized_size_.num_values()));
        resize_planes(values, stored_size_, resized_size_, resized);
        values = std::move(resized);
    }
    std::vector<float> taken(out.size() / sizeof(float));
    if (has_window_) {
        copy_window(std::as_bytes(std::span(values)), resized_size_, window(key), size_, sizeof(float),
                    std::as_writable_bytes(std::span(taken)));
    } else {
        taken = std::move(values);
    }
    change_numbers(taken);
    std::memcpy(out.data(), taken.data(), out.size());
}

}  // namespace vpp::detail
