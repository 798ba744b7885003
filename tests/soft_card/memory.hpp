#pragma once
// Memory of a soft card: of the host, at addresses where the host finds nothing.
#include <cstddef>

namespace vpp::soft_card {

/// A byte of memory that holds nothing yet.
constexpr int kGarbage = 0x7F;

/// Where something is.
enum class Place { Pageable, Pinned, Card };

/// Null when the card has not that much left. VPP_SOFT_CARD_BYTES: how much it has, in one process.
void* take_card_memory(size_t num_bytes);
void* take_pinned_memory(size_t num_bytes);
/// Of either kind. Requires: it begins what was taken.
void give_memory(void* address);

Place place_of(const void* address);
/// Where the host reads and writes what lies at `address`, whatever its place.
void* near(const void* address);

size_t card_bytes();
size_t free_card_bytes();

}  // namespace vpp::soft_card
