#pragma once
// Samples by index. One implementation a kind of data, in a file of its own, and one row in data/registry.cpp.
// Files are checked when opened; a sample is read when asked for, field by field.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/fields.hpp"
#include "plan/plan.hpp"

namespace vpp {

/// A sample as a step takes it: in which epoch of a training, or in none, as evaluations do.
struct Draw {
    int64_t sample = 0;
    std::optional<int64_t> epoch = {};
    bool operator==(const Draw&) const = default;
};

class Dataset {
  public:
    virtual ~Dataset() = default;
    virtual const Fields& fields() const = 0;
    /// Writes one field of one sample; `out` has exactly the field's bytes_per_sample.
    /// Throws Error{BadData} with file and sample when a value is out of its range.
    virtual void read(int64_t sample, int field, std::span<std::byte> out) const = 0;
    /// The same for a draw, whose epoch may change what is random in a sample (data/transforms).
    virtual void read_draw(const Draw& draw, int field, std::span<std::byte> out) const;
    /// Where one sample's field comes from, for messages: "stdlib.bin, sample 12".
    virtual std::string where(int64_t sample, int field) const;
    /// Which sample of the files, counted through all of them, that sample is: another number in a part of a split.
    virtual int64_t stored_sample(int64_t sample) const;
    /// How many samples come from each file, in their order, where the data are a list of files; else all at once.
    virtual std::vector<int64_t> file_samples() const;
    /// What stands in a field where a sample has no value of it, for a loss to ignore; nothing where each has all.
    virtual std::optional<int64_t> filler(int field) const;
    /// The digest over header, size and first and last MiB of every file: what ranks compare.
    virtual std::string digest() const = 0;
};

enum class Subset { Train, Validation };

/// Opens the training or the validation part: files of their own, or the parts of data.val_split. Null when the plan
/// names no validation part.
/// Throws Error{MissingInput, BadData, Plan}.
std::unique_ptr<Dataset> open_dataset(const Plan& plan, Subset subset);

/// The element type of each training file of tokens, as a header, an index beside it or the plan says: "uint16" or
/// "uint32, uint16". Empty for other kinds. Throws as open_dataset.
std::string token_types(const Plan& plan);

/// The names that data.kind may have.
std::vector<std::string> dataset_kinds();

}  // namespace vpp
