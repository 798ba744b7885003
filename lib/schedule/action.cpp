#include "schedule/action.hpp"

#include <array>

namespace vpp {

namespace {
// In the order of ActionKind.
constexpr std::array<const char*, 9> kNames{"F", "B", "I", "W", "SEND_F", "RECV_F", "SEND_B", "RECV_B", "REDUCE_GRAD"};
}  // namespace

bool is_computing(ActionKind kind) {
    return kind <= ActionKind::W;
}
bool gives_input_gradient(ActionKind kind) {
    return kind == ActionKind::B || kind == ActionKind::I;
}
bool gives_weight_gradient(ActionKind kind) {
    return kind == ActionKind::B || kind == ActionKind::W;
}
bool is_send(ActionKind kind) {
    return kind == ActionKind::SendF || kind == ActionKind::SendB;
}
bool is_receive(ActionKind kind) {
    return kind == ActionKind::RecvF || kind == ActionKind::RecvB;
}
bool carries_gradient(ActionKind kind) {
    return kind == ActionKind::SendB || kind == ActionKind::RecvB;
}

std::string to_text(const Action& action) {
    std::string text = std::to_string(action.stage) + kNames.at(static_cast<size_t>(action.kind));
    if (action.kind == ActionKind::ReduceGrad) return text;
    text += std::to_string(action.microbatch);
    if (action.paired) text += '&';
    if (is_transfer(action.kind)) text += (is_send(action.kind) ? '>' : '<') + std::to_string(action.peer);
    return text;
}

std::string to_text(const std::vector<Action>& actions) {
    std::string text;
    for (const Action& action : actions) text += (text.empty() ? "" : " ") + to_text(action);
    return text;
}

}  // namespace vpp
