#include "base/random.hpp"

#include <bit>

#include "base/error.hpp"

namespace vpp {

uint64_t microbatch_key(uint64_t seed, int64_t step, int64_t replica, int64_t microbatch) {
    // Mixed twice: combine_key alone would treat seed and step alike.
    uint64_t key = mix64(mix64(seed));
    key = combine_key(key, static_cast<uint64_t>(step));
    key = combine_key(key, static_cast<uint64_t>(replica));
    return combine_key(key, static_cast<uint64_t>(microbatch));
}

uint64_t transform_key(uint64_t seed, int64_t epoch, int64_t sample) {
    // Mixed once more than for a microbatch: the two share nothing.
    const uint64_t key = combine_key(mix64(mix64(mix64(seed))), static_cast<uint64_t>(epoch));
    return combine_key(key, static_cast<uint64_t>(sample));
}

uint64_t site_seed(uint64_t key, int64_t site, int64_t execution) {
    return combine_key(combine_key(key, static_cast<uint64_t>(site)), static_cast<uint64_t>(execution));
}

uint64_t name_key(uint64_t seed, std::string_view name) {
    uint64_t key = mix64(seed);
    for (const char byte : name) key = combine_key(key, static_cast<unsigned char>(byte));
    return key;
}

Permutation::Permutation(int64_t size, uint64_t key) : size_(size), key_(key) {
    check(size > 0, "a permutation has at least one element");
    const int bits = std::bit_width(static_cast<uint64_t>(size - 1));
    half_bits_ = (bits + 1) / 2;
}

uint64_t Permutation::encrypt(uint64_t value) const {
    const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
    uint64_t left = value >> half_bits_, right = value & mask;
    for (uint64_t round = 0; round < 8; ++round) {
        const uint64_t next = left ^ (combine_key(combine_key(key_, round), right) & mask);
        left = right;
        right = next;
    }
    return left << half_bits_ | right;
}

int64_t Permutation::operator()(int64_t index) const {
    check(index >= 0 && index < size_, "the index lies inside the permutation");
    auto value = static_cast<uint64_t>(index);
    do {
        value = encrypt(value);
    } while (value >= static_cast<uint64_t>(size_));
    return static_cast<int64_t>(value);
}

}  // namespace vpp
