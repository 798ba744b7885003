#pragma once
// Gradients are added in microbatch order, whatever the order of the actions: a backward pass whose turn has not come
// leaves its gradients here until it has.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

namespace vpp {

class GradientTurns {
  public:
    /// The trained parameters whose `.grad` is written.
    explicit GradientTurns(std::vector<at::Tensor> parameters) : parameters_(std::move(parameters)) {}

    /// Forgets turns; to be called at the start of a step, when nothing is parked.
    void begin_step();
    /// Runs a backward pass that adds into `.grad`, or parks what it gives.
    void run(int microbatch, const std::function<void()>& backward);
    /// Bytes that wait for their turn.
    int64_t parked_bytes() const;

  private:
    /// Of what is to be read by others as it lies in memory.
    void resolve_negated();
    std::vector<at::Tensor> take_gradients();
    void add_parked();

    std::vector<at::Tensor> parameters_;
    std::map<int, std::vector<at::Tensor>> parked_;  ///< by microbatch
    int next_ = 0;
};

}  // namespace vpp
