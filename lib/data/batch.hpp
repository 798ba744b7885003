#pragma once
// One field of many samples in one contiguous buffer: what a stage copies to its device as [n, field shape...].
#include <cstddef>
#include <cstdint>
#include <span>

#include "data/dataset.hpp"

namespace vpp {

/// Reads one field of samples in the order given.
/// Shape:    draws [n] -> out: n times the field's bytes_per_sample, sample after sample.
/// Requires: `out` has exactly that size; samples and field exist.
/// Throws:   Error{BadData} with file and sample when a value is out of its range.
void read_samples(const Dataset& dataset, int field, std::span<const Draw> draws, std::span<std::byte> out);

}  // namespace vpp
