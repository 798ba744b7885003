#pragma once
// Which data a model takes, guessed from its file: shapes that its first ops allow are tried one after another until
// forward runs. The largest bound of integers is that of what they choose from.
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "data/fields.hpp"
#include "examples/size_hints.hpp"
#include "graph/input_trial.hpp"

namespace vpp {

struct GuessedInput {
    Field field;
    std::string reason;  ///< "a linear layer takes it"
};

struct InputGuess {
    std::vector<GuessedInput> inputs;     ///< of the arguments without a default, in their order
    int64_t samples = 0;                  ///< of a microbatch that was tried
    std::optional<TriedForward> forward;  ///< what it returned; empty: no shapes that were tried fit
    std::string problem;                  ///< why the first shapes did not fit
};

/// What another argument is taken to be.
struct ChosenInput {
    InputUse use = InputUse::Unknown;
    Field field;
};

/// What an argument may be, the likeliest first: masks follow the tokens, and targets the image.
std::vector<Field> likely_fields(const ForwardArgument& argument, const std::vector<ChosenInput>& others = {},
                                 const LikelySizes& sizes = {});

/// Tries no more shapes after `patience`. Where none fits, the sizes are tried that the model named.
/// Throws Error{BadData}: an argument that no data field can be.
InputGuess guess_inputs(const InputTrial& trial, std::chrono::seconds patience = std::chrono::seconds(30));

}  // namespace vpp
