#include "data/batch.hpp"

#include "base/error.hpp"

namespace vpp {

void read_samples(const Dataset& dataset, int field, std::span<const Draw> draws, std::span<std::byte> out) {
    const std::vector<Field>& fields = dataset.fields().fields;
    check(field >= 0 && static_cast<size_t>(field) < fields.size(), "the field exists");
    const auto bytes = static_cast<size_t>(fields[static_cast<size_t>(field)].bytes_per_sample());
    check(out.size() == draws.size() * bytes, "the buffer has the size of the samples");
    for (size_t i = 0; i < draws.size(); ++i) dataset.read_draw(draws[i], field, out.subspan(i * bytes, bytes));
}

}  // namespace vpp
