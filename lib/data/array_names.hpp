#pragma once
// Arrays of files that hold several, as a plan names them: "digits.npz:x_train".
#include <string>
#include <vector>

namespace vpp::detail {

/// A file, and which array of it is meant.
struct ArrayName {
    std::string file;
    std::string array;  ///< empty: the file holds one alone
};

/// Takes apart what a plan says of a field: behind a name that ends with .npz or .safetensors an array may follow,
/// and is the one with the field's name when none does.
ArrayName read_array_name(const std::string& written, const std::string& field);

/// Throws Error{BadData} that lists what the file has instead.
[[noreturn]] void refuse_unknown_array(const std::string& name, const std::vector<std::string>& names,
                                       const std::string& source);

}  // namespace vpp::detail
