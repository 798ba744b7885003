#pragma once
// One entry of a schedule, in the vocabulary of torch.distributed.pipelining.
#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vpp {

/// F forward, B full backward, I input gradient, W weight gradient; the rest move values between ranks or replicas.
enum class ActionKind { F, B, I, W, SendF, RecvF, SendB, RecvB, ReduceGrad };

/// `stage` is the stage that computes, or for a transfer the stage on whose rank it happens: SEND_F the producer's,
/// RECV_F the consumer's, SEND_B the consumer's (it sends the gradient), RECV_B the stage that takes the gradient.
struct Action {
    ActionKind kind = ActionKind::F;
    int stage = 0;
    int microbatch = 0;
    int edge = -1;  ///< transfers: which edge
    int peer = -1;  ///< transfers: PP rank of the other side
    /// The first half of an OVERLAP_F_B: may run beside the computing action behind it, one of the other direction.
    bool paired = false;

    auto operator<=>(const Action&) const = default;
};

/// F, B, I or W.
bool is_computing(ActionKind kind);
/// B or I: what gives the gradients of a stage's inputs.
bool gives_input_gradient(ActionKind kind);
/// B or W: what gives the gradients of a stage's weights and frees its activations.
bool gives_weight_gradient(ActionKind kind);
bool is_send(ActionKind kind);
bool is_receive(ActionKind kind);
/// SEND_F or SEND_B, RECV_F or RECV_B.
inline bool is_transfer(ActionKind kind) {
    return is_send(kind) || is_receive(kind);
}
/// Whether a transfer carries a gradient (SEND_B, RECV_B).
bool carries_gradient(ActionKind kind);

/// "F", "SEND_F", "REDUCE_GRAD".
const char* word_of(ActionKind kind);
/// The kind with that word, if there is one.
std::optional<ActionKind> kind_from_word(std::string_view word);

/// "0F1", "2B3", "0SEND_F2>1", "1RECV_F2<0" (transfers name the peer), "3REDUCE_GRAD"; a paired one ends in '&'.
std::string to_text(const Action& action);
/// The texts of several actions, separated by blanks.
std::string to_text(const std::vector<Action>& actions);

/// For every PP rank its actions in order.
using ActionLists = std::vector<std::vector<Action>>;

}  // namespace vpp
