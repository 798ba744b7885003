#include "engine/replica_pieces.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cstring>

#include "base/error.hpp"
#include "engine/alignment.hpp"
#include "graph/torch_dtype.hpp"
#include "optim/memory_order.hpp"
#include "stage/message.hpp"

namespace vpp {

Channel replica_channel(int number, ReplicaContent content) {
    return {number, static_cast<int>(content), Direction::Replicas};
}

at::Tensor elements_of(const at::Tensor& whole, const Piece& piece) {
    if (!whole.defined()) return {};
    return in_memory_order(whole).slice(0, piece.begin, piece.end);
}

std::optional<at::Device> place_of_parts(const Transport& transport, at::Device device) {
    return transport.carries_device_memory() ? std::optional(device) : std::nullopt;
}

PieceMessage::PieceMessage(const Graph& graph, const Pieces& pieces, std::optional<at::Device> place)
    : header_bytes_(aligned_bytes(std::max<size_t>(1, pieces.size()))), place_(place) {
    for (const Piece& piece : pieces) {
        const DType dtype = graph.parameters[static_cast<size_t>(piece.parameter)].dtype;
        entries_.push_back({to_torch(dtype), piece.size(), aligned_bytes(elements_bytes_)});
        elements_bytes_ = entries_.back().offset + static_cast<size_t>(piece.size()) * size_of(dtype);
    }
}

MessageSize PieceMessage::size() const {
    if (place_) return {header_bytes_, elements_bytes_};
    return {size_bytes(), 0};
}

Buffer PieceMessage::make(const std::vector<at::Tensor>& elements) const {
    check(elements.size() == entries_.size(), "a message has all of its pieces");
    Buffer message(place_ ? header_bytes_ : size_bytes());
    at::Tensor part;
    if (place_) part = at::empty({static_cast<int64_t>(elements_bytes_)}, at::TensorOptions(*place_).dtype(at::kByte));
    for (size_t i = 0; i < entries_.size(); ++i) {
        message.bytes()[i] = std::byte{elements[i].defined()};
        if (elements[i].defined()) write(i, elements[i], message.bytes().data() + header_bytes_, part);
    }
    if (elements_bytes_ > 0 && place_) message.set_part(part_of(std::move(part), elements_bytes_));
    return message;
}

/// Into the part where there is one.
void PieceMessage::write(size_t entry, const at::Tensor& elements, std::byte* bytes, const at::Tensor& part) const {
    const auto& [dtype, num_elements, offset] = entries_[entry];
    check(elements.scalar_type() == dtype && elements.numel() == num_elements && elements.is_contiguous(),
          "a piece has the form that its message has planned");
    if (!part.defined()) {
        const at::Tensor here = elements.cpu();
        std::memcpy(bytes + offset, here.const_data_ptr(), here.nbytes());
        return;
    }
    const auto begin = static_cast<int64_t>(offset);
    part.slice(0, begin, begin + static_cast<int64_t>(elements.nbytes())).view(dtype).copy_(elements);
}

std::vector<at::Tensor> PieceMessage::read(const Buffer& message, at::Device device) const {
    const size_t expected_bytes = place_ ? header_bytes_ : size_bytes();
    const size_t part_bytes = place_ ? elements_bytes_ : 0;
    if (message.bytes().size() != expected_bytes || message.part().num_bytes != part_bytes) {
        throw Error(ErrorKind::RanksDisagree, "a message between replicas has another size than it must have (got " +
                                                  std::to_string(message.size_bytes()) + " bytes, expected " +
                                                  std::to_string(size_bytes()) + ")");
    }
    const std::shared_ptr<std::byte>& owner = place_ ? message.part().data : message.owner();
    std::byte* data = place_ ? owner.get() : owner.get() + header_bytes_;
    const at::Device place = place_.value_or(at::kCPU);
    std::vector<at::Tensor> elements(entries_.size());
    for (size_t i = 0; i < entries_.size(); ++i) {
        if (message.bytes()[i] == std::byte{0}) continue;
        const auto options = at::TensorOptions(place).dtype(entries_[i].dtype);
        const auto keep_alive = [owner](void*) {};
        elements[i] =
            at::from_blob(data + entries_[i].offset, {entries_[i].num_elements}, {1}, keep_alive, options, place);
        if (!place_) elements[i] = elements[i].to(device);
    }
    return elements;
}

Exchange exchange_of_own(const std::vector<int>& replicas, size_t own, const Channel& channel,
                         const std::vector<PieceMessage>& messages, const std::vector<at::Tensor>& elements) {
    Exchange exchange{replicas, channel, std::vector<Buffer>(replicas.size()), {}};
    const Buffer message = messages[own].make(elements);
    for (size_t i = 0; i < replicas.size(); ++i) {
        const bool is_own = i == own;
        if (!is_own) exchange.sent[i] = message;
        exchange.expected.push_back(is_own ? MessageSize{} : messages[i].size());
    }
    return exchange;
}

std::vector<Buffer> receive_all(Transport& transport, const std::vector<int>& replicas, size_t own,
                                const Channel& channel) {
    std::vector<Buffer> messages(replicas.size());
    for (size_t i = 0; i < replicas.size(); ++i) {
        if (i != own) messages[i] = transport.receive(replicas[i], channel);
    }
    return messages;
}

}  // namespace vpp
