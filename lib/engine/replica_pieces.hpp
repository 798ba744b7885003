#pragma once
// What replicas send each other: pieces of gradients, parameters and optimizer state (program/replica_shares.hpp).
#include <ATen/core/Tensor.h>

#include <vector>

#include "comm/transport.hpp"
#include "program/replica_shares.hpp"

namespace vpp {

/// What a message between replicas is about; its number is that of a bucket, or a parameter for state.
enum class ReplicaContent { Gradients, Sums, Parameters, State, Buffers };

Channel replica_channel(int number, ReplicaContent content);

/// The elements of a piece: one dim; shares the memory of the whole tensor, which may be undefined, as the result is
/// then.
at::Tensor elements_of(const at::Tensor& whole, const Piece& piece);

/// The form of a message with these pieces, each there or not: a byte for each that says so, then the elements, each
/// at a multiple of 64 bytes.
class PieceMessage {
  public:
    PieceMessage(const Graph& graph, const Pieces& pieces);
    size_t size_bytes() const { return size_bytes_; }
    /// `elements`: by piece, one dim; undefined where there are none.
    Buffer make(const std::vector<at::Tensor>& elements) const;
    /// By piece; on the CPU they keep the message's memory alive.
    /// Throws: Error{RanksDisagree} for a message of another size.
    std::vector<at::Tensor> read(const Buffer& message, at::Device device = at::kCPU) const;

  private:
    struct Entry {
        at::ScalarType dtype;
        int64_t num_elements = 0;
        size_t offset = 0;
    };
    std::vector<Entry> entries_;
    size_t size_bytes_ = 0;
};

}  // namespace vpp
