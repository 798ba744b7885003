#pragma once
// XXH3-128 digests: of tensors, files, programs. Not cryptographic; they find damage and disagreement.
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace vpp {

/// An XXH3-128 value.
struct Digest {
    uint64_t high = 0;
    uint64_t low = 0;
    auto operator<=>(const Digest&) const = default;
};

/// 32 hexadecimal digits, high half first.
std::string to_hex(const Digest& digest);
/// The digest with that text; empty when it is not 32 lower-case hexadecimal digits.
std::optional<Digest> digest_from_hex(std::string_view text);

Digest hash_bytes(std::span<const std::byte> bytes);
Digest hash_text(std::string_view text);

/// Hashes a stream piece by piece.
class Hasher {
  public:
    Hasher();
    ~Hasher();
    Hasher(Hasher&&) noexcept;
    Hasher& operator=(Hasher&&) noexcept;
    void add(std::span<const std::byte> bytes);
    void add_text(std::string_view text);  ///< its length and its bytes
    Digest digest() const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace vpp
