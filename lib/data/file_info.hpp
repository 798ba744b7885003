#pragma once
// What a data file holds, found out from its name and bytes: what `vpp data info` says, for every kind that has files.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.hpp"

namespace vpp {

/// The least and the largest finite value of those that were looked at.
struct SeenValues {
    double low = 0, high = 0;  ///< infinity and its opposite where no value is finite
    bool all = true;           ///< false: of the begin of the file alone
    int64_t num_values = 0, num_not_finite = 0;

    bool has_range() const { return num_not_finite < num_values; }
};

struct ArrayInfo {
    std::string name;  ///< of the field, or of the array in a file of several; may be empty
    DType dtype = DType::F32;
    std::vector<int64_t> shape;        ///< of one sample
    int64_t num_samples = 0;           ///< 0 too where one of several arrays is a number without dims
    std::optional<SeenValues> values;  ///< not of what no field can be made of
    std::string problem = {};          ///< why it cannot be read; then nothing but its name is known
};

struct DocumentInfo {
    int64_t count = 0, shortest = 0, longest = 0;  ///< lengths in tokens
};

struct FileInfo {
    std::string file;  ///< what is described: the path that was given, of an index the tokens beside it
    std::string kind;  ///< data.kind of a plan that reads it
    uint64_t size_bytes = 0;
    std::vector<ArrayInfo> arrays;  ///< what samples are made of; of tokens and text none
    int64_t num_tokens = 0;         ///< of tokens and text
    size_t token_bytes = 0;
    std::optional<SeenValues> tokens;
    std::optional<DocumentInfo> documents;  ///< of tokens with an index
    std::string note;                       ///< of tokens and text: what they seem to be besides; else empty
};

/// Looks at a file of that kind; with an empty `kind` at one of the kind that it seems to be. Bytes that have no form
/// of their own are tokens where the name ends with .bin, else text. At most so many bytes of values are read. Throws:
/// Error{CommandLine} for a kind that has no files; Error{MissingInput, BadData, Io} as a training would, but
/// for one of several arrays, whose problem stands with it.
FileInfo look_at_file(const std::string& path, const std::string& kind, int64_t most_bytes = int64_t{1} << 26);

}  // namespace vpp
