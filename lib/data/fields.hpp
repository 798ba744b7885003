#pragma once
// What a data set offers, as plain values: names, dtypes and shapes of a sample's fields, and how many samples.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/dtype.hpp"

namespace vpp {

struct Field {
    std::string name;
    DType dtype = DType::F32;
    std::vector<int64_t> shape;  ///< of one sample; a batch puts its number of samples in front
    /// Integers: every value read lies in [0, bound), proven by the format or checked when read; 0 = unknown.
    int64_t bound = 0;

    /// Of so many samples.
    std::vector<int64_t> batch_shape(int64_t samples) const;
    int64_t bytes_per_sample() const { return num_elements(shape) * static_cast<int64_t>(size_of(dtype)); }
};

struct Fields {
    std::vector<Field> fields;
    int64_t num_samples = 0;

    /// The index of the field with that name, or -1.
    int find(const std::string& name) const;
};

/// What every Dataset::read demands of its caller; a broken demand is a bug.
/// Requires: sample and field exist, and num_bytes is the field's bytes_per_sample.
void check_read(const Fields& fields, int64_t sample, int field, size_t num_bytes);

}  // namespace vpp
