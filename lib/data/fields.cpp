#include "data/fields.hpp"

#include "base/error.hpp"

namespace vpp {

std::vector<int64_t> Field::batch_shape(int64_t samples) const {
    std::vector<int64_t> batch{samples};
    batch.insert(batch.end(), shape.begin(), shape.end());
    return batch;
}

int Fields::find(const std::string& name) const {
    for (size_t i = 0; i < fields.size(); ++i) {
        if (fields[i].name == name) return static_cast<int>(i);
    }
    return -1;
}

void check_read(const Fields& fields, int64_t sample, int field, size_t num_bytes) {
    check(sample >= 0 && sample < fields.num_samples, "the sample exists");
    check(field >= 0 && static_cast<size_t>(field) < fields.fields.size(), "the field exists");
    const int64_t expected = fields.fields[static_cast<size_t>(field)].bytes_per_sample();
    check(num_bytes == static_cast<size_t>(expected), "the buffer has the size of one sample of the field");
}

}  // namespace vpp
