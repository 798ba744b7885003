#include "schedule/replay.hpp"

#include <unordered_set>

namespace vpp {

uint64_t message_key(const Action& transfer) {
    const uint64_t direction = carries_gradient(transfer.kind) ? 1 : 0;
    return direction << 63 | static_cast<uint64_t>(transfer.edge) << 32 | static_cast<uint64_t>(transfer.microbatch);
}

std::vector<size_t> replay(const Schedule& lowered, const std::function<void(int rank, size_t index)>& visit) {
    std::vector<size_t> done(lowered.actions.size(), 0);
    std::unordered_set<uint64_t> sent;
    bool progress = true;
    while (progress) {
        progress = false;
        for (size_t rank = 0; rank < done.size(); ++rank) {
            const std::vector<Action>& list = lowered.actions[rank];
            for (; done[rank] < list.size(); ++done[rank]) {
                const Action& action = list[done[rank]];
                if (is_receive(action.kind) && !sent.contains(message_key(action))) break;
                if (is_send(action.kind)) sent.insert(message_key(action));
                visit(static_cast<int>(rank), done[rank]);
                progress = true;
            }
        }
    }
    return done;
}

}  // namespace vpp
