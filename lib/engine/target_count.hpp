#pragma once
// How many targets of some samples a loss of classes counts, found from the data ahead of the step: the first backward
// of a mean over targets comes before the other microbatches.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "engine/loader.hpp"
#include "program/counted_targets.hpp"

namespace vpp {

class TargetCount {
  public:
    /// Nothing where the loss has no such targets (find_counted_targets).
    /// Owns: borrows graph and dataset, which must outlive it.
    static std::optional<TargetCount> of(const Graph& graph, Source& source, const Dataset& data);

    const CountedTargets& counted() const { return counted_; }

    /// Gives a model input of a microbatch.
    using Load = std::function<at::Tensor(int microbatch, int input)>;

    /// Makes the targets of microbatches 0, 1, ... on the host, as forward makes them; asks for `counted().inputs` of
    /// each in that order.  Throws what `load` throws, and Error{BadData} where an op fails.
    int64_t in(int num_microbatches, const Load& load) const;

    /// In words, where none of a microbatch's samples counts; else empty. Reads them from the data.
    std::string all_ignored_text(std::span<const Draw> samples) const;

  private:
    TargetCount(CountedTargets counted, const Graph& graph, Source& source, const Dataset& data);

    CountedTargets counted_;
    Loader loader_;
    std::unique_ptr<Executable> targets_;
};

}  // namespace vpp
