#pragma once
// Tables of numbers as text to .npy files, one a field. A table has a line of names, not all of which are numbers, then
// lines of as many numbers; fields are separated by commas, and may stand in quotes. Empty lines are passed over, but
// in a table of one column, where one before the last number is a number that is missing.
#include <string>
#include <utility>
#include <vector>

#include "base/dtype.hpp"

namespace vpp {

struct CsvOrder {
    std::string out, table;  ///< the folder that gets FIELD.npy; the file that is read
    /// Field -> its columns: one makes numbers, several a vector. Empty: each column is a field.
    std::vector<std::pair<std::string, std::vector<std::string>>> fields;
    bool overwrite = false;
};

struct FieldMade {
    std::string file;
    /// int64 where all numbers are whole ones written without point, which must fit it then, else float32.
    DType dtype = DType::F32;
    std::vector<int64_t> shape;  ///< rows first
};

/// Reads the table twice, so that it need not fit into memory. The files appear when all are whole, and no
/// new one ever lies beside an old one that is replaced.
/// Throws: Error{BadData} with file, line and column of what is no number, Error{CommandLine} for a column that is not
///         there, Error{Output} when a file is there already, the folder cannot be made or more files than the process
///         may have would be open, Error{MissingInput, Io}.
std::vector<FieldMade> make_csv_fields(const CsvOrder& order);

}  // namespace vpp
