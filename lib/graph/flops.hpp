#pragma once
// FLOPs of what a thread runs, from the shapes of its tensors: matrix products, convolutions, recurrent layers and
// attention, in whatever op they are; a multiply-add counts two. As torch.utils.flop_counter counts them.
#include <ATen/record_function.h>
#include <c10/util/ArrayRef.h>

namespace vpp {

/// Counts what this thread runs while it lives, on the meta device too. One at a time.
class FlopCounter {
  public:
    FlopCounter();
    ~FlopCounter();
    FlopCounter(const FlopCounter&) = delete;
    FlopCounter& operator=(const FlopCounter&) = delete;

    /// Since the last call.
    double take();

  private:
    at::CallbackHandle callback_;
};

/// Counted as if it had run: attention over queries [..., l, e] and keys [..., s, e]; masks are not discounted.
void count_attention(at::IntArrayRef query, at::IntArrayRef key);

}  // namespace vpp
