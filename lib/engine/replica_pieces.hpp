#pragma once
// What replicas send each other: pieces of gradients, parameters and optimizer state (program/replica_shares.hpp).
#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "comm/transport.hpp"
#include "program/replica_shares.hpp"

namespace vpp {

/// What a message between replicas is about; its number is that of a bucket, or a parameter for state. By turns they
/// have one link and the other (kLinksOfReplicas): sums are made while gradients come, when these are done all have the
/// same buffers, and behind the sums come parameters.
enum class ReplicaContent { Gradients, Sums, Buffers, Parameters, State };

Channel replica_channel(int number, ReplicaContent content);

/// The elements of a piece: one dim; shares the memory of the whole tensor, which may be undefined, as the result is
/// then.
at::Tensor elements_of(const at::Tensor& whole, const Piece& piece);

/// Where a transport has the elements of pieces that lie on `device`: there, when it carries such memory.
std::optional<at::Device> place_of_parts(const Transport& transport, at::Device device);

/// The form of a message with these pieces, each there or not: a byte for each that says so, then the elements, each
/// at a multiple of 64 bytes.
class PieceMessage {
  public:
    /// `place`: the elements are the message's part and lie there; none: they are copied behind its bytes.
    PieceMessage(const Graph& graph, const Pieces& pieces, std::optional<at::Device> place = std::nullopt);
    size_t size_bytes() const { return header_bytes_ + elements_bytes_; }
    MessageSize size() const;
    /// `elements`: by piece, one dim; undefined where there are none.
    Buffer make(const std::vector<at::Tensor>& elements) const;
    /// By piece; on the CPU and in a part they keep the message's memory alive.
    /// Throws: Error{RanksDisagree} for a message of another size.
    std::vector<at::Tensor> read(const Buffer& message, at::Device device = at::kCPU) const;

  private:
    struct Entry {
        at::ScalarType dtype;
        int64_t num_elements = 0;
        size_t offset = 0;  ///< behind the header
    };
    void write(size_t entry, const at::Tensor& elements, std::byte* bytes, const at::Tensor& part) const;

    std::vector<Entry> entries_;
    size_t header_bytes_ = 0;
    size_t elements_bytes_ = 0;
    std::optional<at::Device> place_;
};

/// What this replica has of something goes to all others, what they have of it comes. Of no pieces there is a message
/// too: it says that the replica is there (engine/program_links.hpp).
/// `messages`: by replica, of the pieces that it has; `elements`: of this one's.
Exchange exchange_of_own(const std::vector<int>& replicas, size_t own, const Channel& channel,
                         const std::vector<PieceMessage>& messages, const std::vector<at::Tensor>& elements);

/// What comes of an exchange, by replica; nothing of this one's own.
std::vector<Buffer> receive_all(Transport& transport, const std::vector<int>& replicas, size_t own,
                                const Channel& channel);

}  // namespace vpp
