#pragma once
// One file, or one array of a file, a field; sample i is row i of each: what the kinds arrays and idx share.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/file.hpp"
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

/// `written`: what the plan says of the field.
using OpenRowFile = RowFile (*)(const std::string& written, const std::string& field);

/// Opens the files of the table data.train or data.val.
/// Returns null when the plan names no validation part.
/// Throws: what `open` throws; Error{Plan} when the plan has no table data.train; Error{BadData} for a file without
///         rows or with another number of them.
std::unique_ptr<Dataset> open_rows(const Plan& plan, Subset subset, OpenRowFile open);

}  // namespace vpp::detail
