#pragma once
// Text that vpp makes itself: plain sentences of a small grammar, for a model that learns bytes.
#include <cstddef>
#include <cstdint>
#include <string>

namespace vpp {

/// Exactly so many bytes of sentences, one a line; other seeds give other sentences of the same grammar.
std::string make_sentences(size_t num_bytes, uint64_t seed);

}  // namespace vpp
