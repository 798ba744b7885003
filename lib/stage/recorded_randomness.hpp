#pragma once
// Random ops that are recorded: each reads its seed where another one is put for every replay (device/card_seeds.hpp).
#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "device/card_seeds.hpp"
#include "graph/seed_listener.hpp"

namespace vpp {

class RecordedRandomness : public SeedListener {
  public:
    explicit RecordedRandomness(at::Device device) : seeds_(make_card_seeds(device)) {}

    /// Calls ops that are recorded, a recording's own behind each other.
    /// Throws NotRecordable where they do on the host what a replay would not do again.
    void record(const std::function<void()>& ops);
    void on_random_op(int64_t site, int64_t execution) override;
    /// The microbatch's (base/random.hpp), for the next replay.
    void set_key(uint64_t key);

  private:
    std::unique_ptr<CardSeeds> seeds_;
    std::vector<std::pair<int64_t, int64_t>> sites_;  ///< call site and execution
};

}  // namespace vpp
