#pragma once
// Byte strings for messages between ranks: a growing writer and a bounds-checked reader of fixed-size values.
// Byte order is the machine's own: messages never leave a job.
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace vpp {

using Bytes = std::vector<std::byte>;

/// The bytes of a text, and back.
Bytes to_bytes(std::string_view text);
std::string to_string(std::span<const std::byte> bytes);

/// The bytes of one trivially copyable value or array, as a view.
template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    return std::as_bytes(std::span(&value, 1));
}

/// Appends values to a byte string.
class ByteWriter {
  public:
    template <typename T>
    void put(const T& value) {
        append(bytes_of(value));
    }
    void put_text(std::string_view text);
    void append(std::span<const std::byte> bytes);
    size_t size() const { return bytes_.size(); }
    Bytes take() { return std::move(bytes_); }

  private:
    Bytes bytes_;
};

/// Reads values in the order in which they were put; throws Error{BadData} past the end.
class ByteReader {
  public:
    explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}
    template <typename T>
    T get() {
        static_assert(std::is_trivially_copyable_v<T>);
        T value;
        std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
        return value;
    }
    std::string get_text();
    std::span<const std::byte> take(size_t num_bytes);
    bool empty() const { return rest_.empty(); }

  private:
    std::span<const std::byte> rest_;
};

}  // namespace vpp
