#include "schedule/order_moves.hpp"

#include <algorithm>
#include <bit>

namespace vpp {

namespace {

constexpr int kLongestBlock = 4;
constexpr int kShiftDoublings = 6;  // shifts of up to 2^5 places

}  // namespace

int64_t Draws::exponential() {
    const uint64_t drawn = next() | 1;
    const int zeros = std::countl_zero(drawn);
    const auto fraction = static_cast<int64_t>((drawn << zeros << 1) >> 56);  // behind the leading one, in 1/256
    return int64_t{256} * zeros + 256 - fraction;
}

OrderMove propose_move(const NodeLists& lists, Draws& draws) {
    while (true) {
        const int rank = draws.below(static_cast<int>(lists.size()));
        const int length = static_cast<int>(lists[static_cast<size_t>(rank)].size());
        const int block = draws.below(2) == 0 ? 1 : 1 + draws.below(kLongestBlock);
        const int shift = 1 + draws.below(1 << draws.below(kShiftDoublings));
        if (length < 2) continue;
        const int begin = draws.below(length);
        // a block shifted towards the end is the places behind it shifted towards the beginning
        const bool towards_end = draws.below(2) == 0;
        const int middle = begin + (towards_end ? block : shift);
        const int end = begin + block + shift;
        if (middle >= length) continue;
        return {rank, begin, middle, std::min(end, length)};
    }
}

}  // namespace vpp
