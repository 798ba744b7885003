#include "base/hash.hpp"

#include <xxhash.h>

#include <cstdio>
#include <new>

#include "base/bytes.hpp"

namespace vpp {

namespace {
Digest from_xxh(XXH128_hash_t hash) {
    return {hash.high64, hash.low64};
}
}  // namespace

std::string to_hex(const Digest& digest) {
    char text[33];
    std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(digest.high),
                  static_cast<unsigned long long>(digest.low));
    return text;
}

std::optional<Digest> digest_from_hex(std::string_view text) {
    if (text.size() != 32) return std::nullopt;
    uint64_t halves[2] = {0, 0};
    for (size_t i = 0; i < 32; ++i) {
        const char c = text[i];
        const bool digit = c >= '0' && c <= '9';
        if (!digit && !(c >= 'a' && c <= 'f')) return std::nullopt;
        halves[i / 16] = halves[i / 16] * 16 + static_cast<uint64_t>(digit ? c - '0' : c - 'a' + 10);
    }
    return Digest{halves[0], halves[1]};
}

Digest hash_bytes(std::span<const std::byte> bytes) {
    return from_xxh(XXH3_128bits(bytes.data(), bytes.size()));
}
Digest hash_text(std::string_view text) {
    return hash_bytes(std::as_bytes(std::span(text.data(), text.size())));
}

struct Hasher::State {
    State() : xxh(XXH3_createState()) {
        if (!xxh) throw std::bad_alloc();
        XXH3_128bits_reset(xxh);
    }
    ~State() { XXH3_freeState(xxh); }
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    XXH3_state_t* xxh;
};

Hasher::Hasher() : state_(std::make_unique<State>()) {}
Hasher::~Hasher() = default;
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;

void Hasher::add(std::span<const std::byte> bytes) {
    XXH3_128bits_update(state_->xxh, bytes.data(), bytes.size());
}

void Hasher::add_text(std::string_view text) {
    const uint64_t size = text.size();
    add(bytes_of(size));
    add(std::as_bytes(std::span(text.data(), text.size())));
}

Digest Hasher::digest() const {
    return from_xxh(XXH3_128bits_digest(state_->xxh));
}

}  // namespace vpp
