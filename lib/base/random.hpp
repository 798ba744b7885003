#pragma once
// Keyed randomness: pure functions of a key, never a stream with a state. The mixing is part of the numerical contract:
// a changed constant changes every mask and every data order.
#include <cstdint>
#include <string_view>

namespace vpp {

/// One round of SplitMix64's finaliser (Steele, Lea, Flood 2014): a bijection of 64 bits that mixes well.
constexpr uint64_t mix64(uint64_t x) {
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

/// A key made of another key and one more number.
constexpr uint64_t combine_key(uint64_t key, uint64_t number) {
    return mix64(key ^ mix64(number));
}

/// The key of one microbatch: all random ops of a microbatch derive from it.
/// Units: replica and microbatch count from 0; step is the number of finished updates.
uint64_t microbatch_key(uint64_t seed, int64_t step, int64_t replica, int64_t microbatch);

/// The key of what is random in reading one sample in one epoch of a training.
uint64_t transform_key(uint64_t seed, int64_t epoch, int64_t sample);

/// The seed that a random op gets before it runs: microbatch key, call site in the whole graph, executions of that
/// site.
uint64_t site_seed(uint64_t key, int64_t site, int64_t execution);

/// The key of something that has a name, such as a parameter: mix64(seed), combined with each byte of the name.
uint64_t name_key(uint64_t seed, std::string_view name);

/// A permutation of 0..size-1 as a function: a keyed Feistel network of 8 rounds, walked until it lands inside.
class Permutation {
  public:
    Permutation(int64_t size, uint64_t key);
    /// Where `index` goes; 0 <= index < size.
    int64_t operator()(int64_t index) const;

  private:
    uint64_t encrypt(uint64_t value) const;
    int64_t size_;
    uint64_t key_;
    int half_bits_;
};

}  // namespace vpp
