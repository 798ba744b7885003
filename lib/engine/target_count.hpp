#pragma once
// How many targets of some samples a loss of classes counts, found from the data ahead of the step: the first backward
// of a mean over targets comes before the other microbatches.
#include <cstdint>
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
    static std::optional<TargetCount> of(const Graph& graph, Source& source, const Dataset& data,
                                         int64_t microbatch_size);

    const CountedTargets& counted() const { return counted_; }

    /// Makes the targets of the samples on the host, microbatch by microbatch, as forward makes them.
    /// Throws what reading a sample throws, and Error{BadData} where an op fails.
    int64_t in(std::span<const Draw> samples) const;

    /// In words, where none of them counts; else empty.
    std::string all_ignored_text(std::span<const Draw> samples) const;

  private:
    TargetCount(CountedTargets counted, const Graph& graph, Source& source, const Dataset& data,
                int64_t microbatch_size);

    CountedTargets counted_;
    Loader loader_;
    size_t microbatch_size_;
    std::unique_ptr<Executable> targets_;
};

}  // namespace vpp
