#pragma once
// Weights in the dtype that autocast has ops take (graph/autocast.hpp), one copy of each for all microbatches of a
// step. Autocast makes one at each use, and autograd keeps it to the backward: of every weight of a stage there would
// be as many as microbatches are under way. To autograd each use is still a cast of its own, so gradients are added in
// the same order, and no bit changes.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

namespace vpp {

/// Not for concurrent use.
class WeightCasts {
  public:
    /// Has a copy of it from the next refresh() on. Only float32 is cast, and what has elements.
    void add(const at::Tensor& weight, at::ScalarType dtype);
    /// Casts what the weights hold now, into the same memory each time. Before the first microbatch of a step.
    void refresh();
    /// As weight.to(dtype), over the copy; `weight` itself where there is none or it has been written since.
    at::Tensor use(const at::Tensor& weight, at::ScalarType dtype) const;

    /// Ops that this thread runs while it lives use these.
    class Scope {
      public:
        explicit Scope(const WeightCasts& casts);
        ~Scope();
        Scope(const Scope&) = delete;
        Scope& operator=(const Scope&) = delete;

      private:
        const WeightCasts* before_;
    };

  private:
    struct Copy {
        at::Tensor weight;
        at::ScalarType dtype;
        at::Tensor cast;       ///< from the first refresh on
        uint32_t version = 0;  ///< of the weight when it was cast
    };
    /// The memory where it begins, and what it is cast to.
    using Key = std::tuple<const void*, int64_t, at::ScalarType>;
    static Key key_of(const at::Tensor& weight, at::ScalarType dtype);

    std::vector<Copy> copies_;
    std::map<Key, size_t> index_;
};

}  // namespace vpp
