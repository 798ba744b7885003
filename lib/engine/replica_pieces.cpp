#include "engine/replica_pieces.hpp"

#include <ATen/ops/from_blob.h>

#include <cstring>

#include "base/error.hpp"
#include "engine/alignment.hpp"
#include "graph/torch_dtype.hpp"
#include "optim/memory_order.hpp"

namespace vpp {

Channel replica_channel(int number, ReplicaContent content) {
    return {number, static_cast<int>(content), Direction::Replicas};
}

at::Tensor elements_of(const at::Tensor& whole, const Piece& piece) {
    if (!whole.defined()) return {};
    return in_memory_order(whole).slice(0, piece.begin, piece.end);
}

PieceMessage::PieceMessage(const Graph& graph, const Pieces& pieces) {
    size_bytes_ = aligned_bytes(pieces.size());
    for (const Piece& piece : pieces) {
        const DType dtype = graph.parameters[static_cast<size_t>(piece.parameter)].dtype;
        entries_.push_back({to_torch(dtype), piece.size(), size_bytes_});
        size_bytes_ += aligned_bytes(static_cast<size_t>(piece.size()) * size_of(dtype));
    }
}

Buffer PieceMessage::make(const std::vector<at::Tensor>& elements) const {
    check(elements.size() == entries_.size(), "a message has all of its pieces");
    Buffer message(size_bytes_);
    std::byte* data = message.bytes().data();
    for (size_t i = 0; i < entries_.size(); ++i) {
        const at::Tensor& tensor = elements[i];
        data[i] = std::byte{tensor.defined()};
        if (!tensor.defined()) continue;
        check(tensor.scalar_type() == entries_[i].dtype && tensor.numel() == entries_[i].num_elements &&
                  tensor.is_contiguous(),
              "a piece has the form that its message has planned");
        const at::Tensor here = tensor.cpu();
        std::memcpy(data + entries_[i].offset, here.const_data_ptr(), here.nbytes());
    }
    return message;
}

std::vector<at::Tensor> PieceMessage::read(const Buffer& message, at::Device device) const {
    if (message.bytes().size() != size_bytes_) {
        throw Error(ErrorKind::RanksDisagree, "a message between replicas has another size than it must have (got " +
                                                  std::to_string(message.bytes().size()) + " bytes, expected " +
                                                  std::to_string(size_bytes_) + ")");
    }
    std::byte* data = message.owner().get();
    std::vector<at::Tensor> elements(entries_.size());
    for (size_t i = 0; i < entries_.size(); ++i) {
        if (data[i] == std::byte{0}) continue;
        elements[i] = at::from_blob(
            data + entries_[i].offset, {entries_[i].num_elements}, [owner = message.owner()](void*) {},
            at::TensorOptions().dtype(entries_[i].dtype));
        elements[i] = elements[i].to(device);
    }
    return elements;
}

}  // namespace vpp
