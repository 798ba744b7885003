#include <utility>

#include "base/error.hpp"
#include "data/array_names.hpp"
#include "data/kinds.hpp"
#include "data/npy.hpp"
#include "data/npz.hpp"
#include "data/rows.hpp"
#include "data/safetensors_array.hpp"

namespace vpp::detail {

namespace {

/// Of what a plan says of the field.
RowFile open_named_rows(const std::string& written, const std::string& field) {
    const ArrayName name = read_array_name(written, field);
    if (name.array.empty()) return open_rows_of_npy(name.file);
    InputFile file(name.file);
    const ArrayPlace place =
        name.file.ends_with(".npz") ? find_in_npz(file, name.array) : find_in_safetensors(file, name.array);
    return rows_of_array(std::move(file), place, name.array);
}

}  // namespace

RowFile open_rows_of_npy(const std::string& path) {
    NpyFile npy(path);
    const ArrayPlace place{npy.dtype(), npy.shape(), npy.file().size_bytes() - npy.data_bytes()};
    return rows_of_array(std::move(npy).take_file(), place, "");
}

RowFile rows_of_array(InputFile file, const ArrayPlace& place, const std::string& array) {
    const std::string source = file.path().string() + (array.empty() ? "" : ":" + array);
    const std::string shape = shape_text(place.shape);
    if (place.shape.empty()) {
        throw Error(ErrorKind::BadData, source + ": the first dim counts samples (got shape " + shape +
                                            ", expected at least one dim); try np.save of array[None]");
    }
    if (place.is_empty()) {
        throw Error(ErrorKind::BadData, source + ": holds no values (got shape " + shape + ")");
    }
    RowFile rows{std::move(file),
                 {"", place.dtype, {place.shape.begin() + 1, place.shape.end()}, 0},
                 place.offset_bytes,
                 place.shape.front()};
    rows.row_bytes = static_cast<size_t>(rows.field.bytes_per_sample());
    rows.array = array;
    return rows;
}

std::unique_ptr<Dataset> open_arrays(const Plan& plan, Subset subset) {
    return open_rows(plan, subset, open_named_rows);
}

}  // namespace vpp::detail
