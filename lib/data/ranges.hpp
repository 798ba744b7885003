#pragma once
// Integer fields held to a range that the model gives: token ids below the vocabulary, labels below the classes. The
// check stands on the host, where file and sample can still be named; on a device it would be an abort without a place.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.hpp"

namespace vpp {

/// What one field's values must be: in [least, bound), or the ignored value.
struct ValueRange {
    std::string field;
    int64_t bound = 0;                    ///< first value that is too large
    std::string meaning;                  ///< where the bound comes from: "vocabulary size of token_embedding"
    std::optional<int64_t> ignore_index;  ///< a value that is legal in spite of the range
    int64_t least = 0;                    ///< below 0 where values may count from the end
};

/// Throws Error{BadData} when a value of `bytes` (whole elements of the field's dtype) breaks the range.
/// `where` opens the message: Dataset::where.
void check_range(const Field& field, const ValueRange& range, std::span<const std::byte> bytes,
                 const std::string& where);

/// The same data set, with every sample checked when it is read; fields() then carries the new bounds. A field whose
/// own bound proves the range already costs nothing. A field's filler becomes the ignored value of the first of its
/// ranges that has one.
/// Requires: every range names an integer field of the data set; one with a filler is int64.
std::shared_ptr<Dataset> with_ranges(std::shared_ptr<Dataset> dataset, std::vector<ValueRange> ranges);

}  // namespace vpp
