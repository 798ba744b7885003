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

/// A whole .npy file as the one array of it.
std::pair<InputFile, ArrayPlace> open_npy(const std::string& path) {
    NpyFile npy(path);
    ArrayPlace place{npy.dtype(), npy.shape(), npy.file().size_bytes() - npy.data_bytes()};
    return {std::move(npy).take_file(), std::move(place)};
}

std::pair<InputFile, ArrayPlace> open_array(const ArrayName& name) {
    if (name.array.empty()) return open_npy(name.file);
    InputFile file(name.file);
    ArrayPlace place =
        name.file.ends_with(".npz") ? find_in_npz(file, name.array) : find_in_safetensors(file, name.array);
    return {std::move(file), std::move(place)};
}

RowFile open_rows_of_array(const std::string& written, const std::string& field_name) {
    const ArrayName name = read_array_name(written, field_name);
    auto [file, place] = open_array(name);
    const std::string source = name.array.empty() ? name.file : name.file + ":" + name.array;
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
    rows.array = name.array;
    return rows;
}

}  // namespace

std::unique_ptr<Dataset> open_arrays(const Plan& plan, Subset subset) {
    return open_rows(plan, subset, open_rows_of_array);
}

}  // namespace vpp::detail
