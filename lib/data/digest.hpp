#pragma once
// What stands for a data file when ranks, or a run and its resumed continuation, compare their data: cheap for files of
// any size, and not a checksum of all of it.
#include "base/file.hpp"
#include "base/hash.hpp"

namespace vpp {

/// Adds the size and the first and last MiB of a file; the whole of a file of at most two.
/// Throws: as InputFile::read.
void add_file(Hasher& hasher, const InputFile& file);

}  // namespace vpp
