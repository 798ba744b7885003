#pragma once
// The weights that a model wants, found in a file that somebody wrote: by name, with equal shape, and of a dtype whose
// values the model's can hold.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/weights_file.hpp"

namespace vpp {

/// Whether a weight that the file lacks is filled from the seed: a table of [[model.init]] may name parameters only.
enum class SeedFill { Never, IfNamed, Named };

/// A parameter or buffer of a model.
struct WantedWeight {
    std::vector<std::string> names;  ///< its own first, then other names of the same tensor; any of them is taken
    DType dtype = DType::F32;
    std::vector<int64_t> shape;
    bool may_be_absent = false;            ///< a constant of the model's, which other tools leave out of files
    SeedFill seed_fill = SeedFill::Never;  ///< Named: it may be absent as well
};

struct MatchedWeights {
    std::vector<std::optional<TensorBytes>> values;  ///< of the file's dtype; empty for those that are absent
    std::vector<std::string> absent;                 ///< own names
    std::vector<std::string> seeded;                 ///< own names of those absent that are Named
    std::vector<std::string> extra;                  ///< names in the file that nobody wants
    std::vector<std::string> notes;                  ///< for the log: a prefix that was left out, what is converted
};

/// Finds all that is wanted; where no name is the file's, by what remains without a prefix (name_prefix.hpp). A
/// name that the file lacks is also looked for without the ".base_layer" and ".default" of PEFT's wrappers. A narrower
/// float will do: copying it into the model's dtype is exact. Looks at headers only, but for tied tensors that
/// the file has more than once: their bytes are compared.
/// Throws: Error{BadData} with all that is missing, with the nearest name, or unfit.
/// Owns:   the bytes are the file's.
MatchedWeights match_weights(const WeightsFile& file, const std::vector<WantedWeight>& wanted);

/// "'a', 'b', 'c' and 4 more".
std::string names_text(const std::vector<std::string>& names);

}  // namespace vpp
