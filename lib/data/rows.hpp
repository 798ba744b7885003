#pragma once
// One file, or one array of a file, a field; sample i is row i of each: what the kinds arrays and idx share.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/file.hpp"
#include "data/array_place.hpp"
#include "data/dataset.hpp"
#include "data/decode.hpp"

namespace vpp::detail {

/// A file of equal rows. Invariant: they lie inside it.
struct RowFile {
    InputFile file;
    Field field;                ///< without a name
    uint64_t offset_bytes = 0;  ///< where the rows begin
    int64_t num_rows = 0;
    size_t row_bytes = 0;     ///< as they are stored
    Decode decode = nullptr;  ///< null: they are stored as the field has them
    std::string array = {};   ///< which one of those in the file; empty where it holds one alone
};

/// Values as the field has them, from number `first` on, counted through all rows in their order.
/// Requires: they exist. Throws: Error{BadData} for a bool that is neither 0 nor 1; as InputFile::read.
void read_values(const RowFile& rows, int64_t first, std::span<std::byte> out);

/// The rows of an IDX file, which are all that it holds.
RowFile open_rows_of_idx(const std::string& path, const std::string& field);
/// The rows of the array of a .npy file.
RowFile open_rows_of_npy(const std::string& path);
/// The rows of one array of a file; `array` names it in messages.
/// Throws: Error{BadData} for one without dims or without values.
RowFile rows_of_array(InputFile file, const ArrayPlace& place, const std::string& array);

/// `written`: what the plan says of the field.
using OpenRowFile = RowFile (*)(const std::string& written, const std::string& field);

/// Opens the files of the table data.train or data.val.
/// Returns null when the plan names no validation part.
/// Throws: what `open` throws; Error{Plan} when the plan has no table data.train; Error{BadData} for a file without
///         rows or with another number of them.
std::unique_ptr<Dataset> open_rows(const Plan& plan, Subset subset, OpenRowFile open);

}  // namespace vpp::detail
