#pragma once
// What makes each example; rows of the table in examples.cpp.
#include "examples/examples.hpp"

namespace vpp::detail {

/// A GPT of two blocks on sentences: tokens and targets, the model returns the loss.
MadeExample make_gpt_tiny(const ExampleRequest& request);
/// A convolutional classifier of pictures of digits.
MadeExample make_digits_cnn(const ExampleRequest& request);
/// Two inputs of different kinds, a tower for each; the class depends on both.
MadeExample make_two_towers(const ExampleRequest& request);
/// A file per stage: mode = "MANUAL_EAGER".
MadeExample make_manual(const ExampleRequest& request);
/// A plan for a model file that is there already, with random data of the shapes that it takes.
/// Throws what InputTrial throws; Error{BadData}: an argument that no data field can be.
MadeExample make_own_model(const ExampleRequest& request);

}  // namespace vpp::detail
