#pragma once
// Who is told where random ops would get their seed (base/random.hpp's site_seed) while they are recorded.
#include <cstdint>

namespace vpp {

class SeedListener {
  public:
    virtual ~SeedListener() = default;
    /// A random op comes next: the `execution`th of its call site for this microbatch.
    virtual void on_random_op(int64_t site, int64_t execution) = 0;
};

/// While this lives, the ops of this thread get no seeds: the listener is told of them.
class ListeningToSeeds {
  public:
    explicit ListeningToSeeds(SeedListener& listener);
    ~ListeningToSeeds();
    ListeningToSeeds(const ListeningToSeeds&) = delete;
    ListeningToSeeds& operator=(const ListeningToSeeds&) = delete;
};

}  // namespace vpp
