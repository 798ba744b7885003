#pragma once
// NumPy's .npz files: zip files with one .npy entry an array, stored as np.savez leaves them. Entries are read where
// they lie; their checksums are not compared, since that would read the whole file.
// Source: https://numpy.org/doc/stable/reference/generated/numpy.savez.html
#include <string>
#include <vector>

#include "base/file.hpp"
#include "data/array_place.hpp"

namespace vpp::detail {

/// The array with that name, that is the entry NAME.npy.
/// Throws Error{BadData} with file and offset for damage, and with a remedy for an array that is not there or that
/// np.savez_compressed wrote.
ArrayPlace find_in_npz(const InputFile& file, const std::string& name);

/// All arrays, in the order of the file; one that cannot be read keeps no other from being found.
/// Throws Error{BadData} for a damaged directory.
std::vector<FoundArray> arrays_of_npz(const InputFile& file);

}  // namespace vpp::detail
