#include "base/bytes.hpp"

#include <cstdint>

#include "base/error.hpp"

namespace vpp {

Bytes to_bytes(std::string_view text) {
    const auto view = std::as_bytes(std::span(text.data(), text.size()));
    return Bytes(view.begin(), view.end());
}

std::string to_string(std::span<const std::byte> bytes) {
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

void ByteWriter::put_text(std::string_view text) {
    put(static_cast<uint64_t>(text.size()));
    append(std::as_bytes(std::span(text.data(), text.size())));
}

void ByteWriter::append(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

std::string ByteReader::get_text() {
    return to_string(take(get<uint64_t>()));
}

std::span<const std::byte> ByteReader::take(size_t num_bytes) {
    if (num_bytes > rest_.size()) {
        throw Error(ErrorKind::BadData, "a message ends early (" + std::to_string(rest_.size()) + " bytes left, " +
                                            std::to_string(num_bytes) + " wanted)");
    }
    const auto taken = rest_.first(num_bytes);
    rest_ = rest_.subspan(num_bytes);
    return taken;
}

}  // namespace vpp
