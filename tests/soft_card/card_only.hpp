#pragma once
// Ops that LibTorch has kernels for on cards alone: the cells of LSTM and GRU layers, the backward pass of rms_norm.
namespace vpp::soft_card {

/// Gives the CPU kernels for them, composed of ops.
void add_card_only_ops();

}  // namespace vpp::soft_card
