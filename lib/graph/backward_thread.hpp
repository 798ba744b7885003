#pragma once
// On which thread autograd works.
#include <c10/core/AutogradState.h>

namespace vpp {

/// While it lives, autograd works on the thread that asks it to, for cards too, which have threads of their own else.
/// It adds gradients in the order of numbers that its nodes get when they are made, and every thread counts for itself:
/// with nodes of two threads (torch.autograd.grad with create_graph in forward makes some while it goes back) the order
/// would depend on all that the process did before.
class BackwardOnThisThread {
  public:
    BackwardOnThisThread() { set(false); }
    ~BackwardOnThisThread() { set(before_); }
    BackwardOnThisThread(const BackwardOnThisThread&) = delete;
    BackwardOnThisThread& operator=(const BackwardOnThisThread&) = delete;

  private:
    static void set(bool many_threads) { c10::AutogradState::get_tls_state().set_multithreading_enabled(many_threads); }

    const bool before_ = c10::AutogradState::get_tls_state().get_multithreading_enabled();
};

}  // namespace vpp
