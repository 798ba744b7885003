#include "base/error.hpp"
#include "data/kinds.hpp"
#include "data/npy.hpp"
#include "data/rows.hpp"

namespace vpp::detail {

namespace {

RowFile open_npy(const std::string& path) {
    NpyFile npy(path);
    const std::string shape = shape_text(npy.shape());
    if (npy.shape().empty()) {
        throw Error(ErrorKind::BadData, path + ": the first dim counts samples (got shape " + shape +
                                            ", expected at least one dim); try np.save of array[None]");
    }
    if (npy.data_bytes() == 0) throw Error(ErrorKind::BadData, path + ": holds no values (got shape " + shape + ")");
    const Field field{"", npy.dtype(), {npy.shape().begin() + 1, npy.shape().end()}, 0};
    const int64_t num_rows = npy.shape().front();
    const uint64_t offset_bytes = npy.file().size_bytes() - npy.data_bytes();
    return {std::move(npy).take_file(), field, offset_bytes, num_rows, static_cast<size_t>(field.bytes_per_sample())};
}

}  // namespace

std::unique_ptr<Dataset> open_arrays(const Plan& plan, Subset subset) {
    return open_rows(plan, subset, open_npy);
}

}  // namespace vpp::detail
