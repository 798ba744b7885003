#include "schedule/action.hpp"

#include <algorithm>
#include <array>

namespace vpp {

namespace {
// In the order of ActionKind.
constexpr std::array<const char*, 9> kWords{"F", "B", "I", "W", "SEND_F", "RECV_F", "SEND_B", "RECV_B", "REDUCE_GRAD"};
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

const char* word_of(ActionKind kind) {
    return kWords.at(static_cast<size_t>(kind));
}

std::optional<ActionKind> kind_from_word(std::string_view word) {
    const auto found = std::find(kWords.begin(), kWords.end(), word);
    if (found == kWords.end()) return std::nullopt;
    return static_cast<ActionKind>(found - kWords.begin());
}

std::string to_text(const Action& action) {
    std::string text = std::to_string(action.stage) + word_of(action.kind);
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
