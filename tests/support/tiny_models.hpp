#pragma once
// Models of a few ops each, written as TorchScript in C++ and saved as files: what is hard to cut, small enough to run
// every cut of it in seconds. Weights are keyed by name, so that every build makes the same bits.
#include <string>
#include <vector>

namespace vpp::test {

/// A model and what it eats.
struct TinyModel {
    std::string name;
    std::string fields;  ///< the keys of [data.fields] for synthetic data
};

/// Models that train; each has `forward(x, y)` that returns the loss.
///   mlp         four linear layers with different activations
///   share       one value used all over the graph, identity ops, views, an expanded value: three and more gradients
///   bn_cnn      convolutions, BatchNorm, in-place ReLU and residual sum
///   dropout     random ops of several kinds
///   containers  lists, tuples, dicts and numbers between the ops
///   unet        skips over the whole depth
///   no_grad     a range in which no gradient is recorded
///   views       in-place writes through views: many cuts are illegal
///   written     a tensor without a gradient that trained values are written into, and one that loses its gradient
///   frozen      frozen parameters used everywhere, parameters that get no gradient
///   tied        parameters used three and four times all over the graph, through no-op views and a list too
///   remembers   buffers, a frozen and a trained parameter that forward writes with what it sees, and uses behind that
///   two_tower   two inputs, two towers of different depth with one shared table, joined late; GroupNorm
const std::vector<TinyModel>& tiny_models();

/// Models for errors; forward(x, y) too.
///   selects     a value whose size depends on the data
///   looks_up    an embedding with 4 rows, fed with integers below 1000
///   overflows   its second update gives a loss that is not finite, when lr is huge
///   steep       a finite loss whose gradient is not
/// and for evaluation:
///   always_trains  writes its batch statistics in evaluation too, like a model that was traced in training mode
///   forces      its forward takes the gradient of an energy, in evaluation too
///   outputs     returns the loss and much else: late, early, written in place, no row a sample, no tensor, an input
///   baked       takes two samples and no other number, like a traced model
const std::vector<TinyModel>& bad_models();

/// Throws std::out_of_range for an unknown name.
const TinyModel& tiny_model(const std::string& name);

/// Writes the model's file.
void save_tiny_model(const std::string& name, const std::string& path);

}  // namespace vpp::test
